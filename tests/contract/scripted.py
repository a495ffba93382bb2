"""A scripted agent program for tests: does what it is told on its standard input, one line at a time.

A line `hook ARGUMENTS…` calls `readyroom hook` as a child of this process, with the JSON after a tab on its
standard input. `/catchup` is a turn that polls, as the program whose hook was called last. Each line is
answered by one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

READYROOM = [sys.executable, "-m", "readyroom"]


def hook(arguments: list[str], given: str = "") -> dict[str, Any]:
    done = subprocess.run(
        [*READYROOM, "hook", *arguments], input=given, capture_output=True, text=True, check=False
    )
    return {"status": done.returncode, "out": done.stdout, "err": done.stderr}


def catch_up(program: str) -> dict[str, Any]:
    hook(["prompt", "--for", program])
    done = subprocess.run([*READYROOM, "poll", "--json"], capture_output=True, text=True, check=False)
    hook(["stop", "--for", program])
    return {"status": done.returncode, "polled": json.loads(done.stdout or "{}"), "err": done.stderr}


def main() -> None:
    os.environ["CLAUDE_PID"] = str(os.getpid())  # as Claude Code does for its hooks
    program = "plain"
    for line in sys.stdin:
        words, _, given = line.rstrip("\n").partition("\t")
        match words.split():
            case ["hook", *arguments]:
                answer, program = hook(arguments, given), arguments[-1]
            case ["/catchup"]:
                answer = catch_up(program)
            case _:
                answer = {"status": 2, "err": f"what is {words!r}?"}
        sys.stdout.write(json.dumps({"line": words, **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
