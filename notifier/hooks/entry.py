"""`readyroom hook EVENT --for PROGRAM`: tells the notifier, and hands its answer to the program.

Exit status 0 whatever happens: a hook that fails would stop the agent's work. Only where a program has seen
its flag change, and the notifier says that this is to wake it, it is the one by which a turn begins.
"""

from __future__ import annotations

import os
import signal
import sys

from notifier.hooks.flag import Flag
from notifier.hooks.place import find_place, given
from notifier.hooks.talk import tell
from notifier.paths import control_socket, runtime_dir
from notifier.programs import MODULES, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notifier.programs.base import Mode, Program, Told

BUDGET_SECONDS = 1.9
BEGIN_TURN = 2
"""The status by which a program that saw its flag change begins a turn with what stands on standard error."""

USAGE = f"""Usage: readyroom hook EVENT --for PROGRAM

Tells this box's notifier what an agent session does. Agent programs call it from their hooks, with their
JSON on stdin; scripts may call it too (--for plain). It never fails, and is silent when no notifier runs.

EVENT: session-start, prompt, tool, dialog-open, dialog-close, stop, session-end
       (of claude-code, too: cwd-changed, and file-changed, which alone may end with another status than 0)
PROGRAM: {", ".join(MODULES)}

READYROOM_HOOK_MODE says what a turn's end does with unread messages: engage (hand them to the agent and
keep it going; the default but for plain), notify (show a line), off (the default for plain).
With engage, `tool` hands over what is urgent, or said by a person.
"""


def main(argv: list[str]) -> int:
    """Run one hook within 2 s; returns its exit status."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, BUDGET_SECONDS)
    status = 0
    try:
        if any(word in ("-h", "--help") for word in argv):
            _print(USAGE)
        elif (wanted := _wanted(argv)) is not None:
            status = _run(*wanted, os.environ)
    except Exception:  # noqa: S110 - silence is what a hook promises
        pass
    finally:
        _let_go_of_output()
        signal.setitimer(signal.ITIMER_REAL, 0)
    return status


def _wanted(argv: list[str]) -> tuple[str, Program] | None:
    match argv[1:]:
        case [event, "--for", name] | ["--for", name, event]:
            program = find(name)
            if program is not None:
                return event, program
    sys.stderr.write(f"readyroom hook: cannot read {' '.join(argv[1:])!r}; nothing was told.\n{USAGE}")
    return None


def _run(event: str, program: Program, environ: Mapping[str, str]) -> int:
    told = program.understand(event, given(sys.stdin.fileno()) if program.reads_stdin else {})
    if told is None:
        return 0
    folder = runtime_dir(environ)
    place = find_place(program, told, environ)
    flag = Flag(folder, place["process"]) if place["sure"] and program.watches(environ) else None
    if told.changed is not None:
        return _begin_turn(program, told.changed, flag)
    watch = _put_up(flag) if told.watch else None
    request = {**place, "watches": flag is not None and flag.stands()}
    answer = {} if told.event is None else _tell(program, told, request, folder, environ)
    if (text := answer.get("text")) or watch:
        _print(program.context(told.event, text, watch=watch))
    if notice := answer.get("notice"):
        _print(program.notice(notice))
    return 0


def _begin_turn(program: Program, changed: str, flag: Flag | None) -> int:
    if flag is None or not flag.wakes(changed):
        return 0
    sys.stderr.write(program.wake)
    sys.stderr.flush()
    return BEGIN_TURN


def _put_up(flag: Flag | None) -> str | None:
    """The path of the flag that the program is to watch."""
    if flag is None:
        return None
    try:
        flag.put_up()
    except OSError:
        return None
    return flag.path


def _tell(
    program: Program, told: Told, place: dict[str, Any], folder: str, environ: Mapping[str, str]
) -> dict[str, Any]:
    return tell(
        control_socket(folder),
        {**place, "op": "hook", "event": told.event, "program": program.name},
        mode=_mode(program, told, environ),
        hand_over=lambda text: _print(program.context(told.event, text)),
        missed=os.path.join(folder, "missed"),
    )


def _mode(program: Program, told: Told, environ: Mapping[str, str]) -> Mode:
    if told.mode is not None:
        return told.mode
    match environ.get("READYROOM_HOOK_MODE"):
        case "engage":
            return "engage"
        case "notify":
            return "notify"
        case "off":
            return "off"
        case _:
            return program.default_mode


def _print(text: str) -> None:
    if sys.stdout is None:
        raise OSError("standard output is closed")
    sys.stdout.write(text)
    sys.stdout.flush()


def _let_go_of_output() -> None:
    """The interpreter tries at its end what could not be written, and would fail."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
