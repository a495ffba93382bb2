"""wrk, a compiled HTTP client: it takes little of the processor that the record and PostgreSQL need."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from bench.load import Load, LoadFailed

SCRIPT = Path(__file__).with_name("say.lua")
GRACE_SECONDS = 30


def missing() -> str | None:
    """What to do when it is not installed; None when it is."""
    if shutil.which("wrk"):
        return None
    return "The bench needs wrk, a compiled HTTP client. Debian: apt install wrk; macOS: brew install wrk."


def write_requests(path: Path, requests: Iterable[tuple[str, str, str]], *, body: str) -> None:
    """Write what say.lua reads: the body, then a line of token, handle and room for each request."""
    lines = [body, *("\t".join(request) for request in requests)]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(url: str, requests: Path, *, clients: int, seconds: int) -> Load:
    """Send the requests in random order for so long, each client the next as soon as it has an answer.

    Raises:
        LoadFailed: an answer was no success, or a connection broke.
    """
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "10s", "-s", str(SCRIPT), url]
    done = subprocess.run(
        [*command, "--", str(requests)],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + GRACE_SECONDS,
    )
    if done.returncode:
        raise LoadFailed(f"wrk ended with status {done.returncode}: {done.stderr[-500:]}")
    return parsed(done.stdout)


def parsed(output: str) -> Load:
    """Read the line that say.lua prints at the end.

    Raises:
        LoadFailed: it counts failures.
    """
    said = json.loads(output.rstrip().rpartition("\n")[2])
    failures = {name: count for name, count in said["failures"].items() if count}
    if failures or not said["operations"]:
        raise LoadFailed(f"wrk: {said['operations']} answers, failures: {failures or 'none'}")
    return Load(said["operations"], said["seconds"], said["p50_ms"], said["p99_ms"])
