"""The program's one entrance. Finds the command's module by its name and imports nothing else."""

from __future__ import annotations

import importlib
import sys

from readyroom.streams import let_go_of_output, mend

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
NEVER_FAILS = "hook"
"""A failure of this command would stop an agent's work."""
RELOADING = ("up", "serve", "broker")
"""To these SIGHUP means: reload."""

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("readyroom.up", "Run everything on this machine: PostgreSQL, record, nerve, notifier."),
    "serve": ("readyroom.serve", "Run the record alone (PostgreSQL is elsewhere)."),
    "broker": ("readyroom.broker", "Run the embedded nerve alone."),
    "migrate": ("readyroom.migrate", "Bring the database's schema up to date."),
    "prune": ("readyroom.prune", "Delete messages that are older than they are to be kept."),
    "admin": ("readyroom.admin", "Operators: realms, boxes, people and their tokens."),
    "notifier": ("readyroom.notifier_daemon", "Run this box's notifier."),
    "connect": ("readyroom.connect", "Join a record that runs elsewhere, by a one-use code or a token."),
    "setup": ("readyroom.setup", "Write our part of an agent program's settings, or take it out."),
    "run": ("readyroom.run", "Start an agent program as a session of its own."),
    "hook": ("notifier.hooks.entry", "What an agent program's hooks call."),
    "status": ("readyroom.status", "What the notifier knows of this box's sessions."),
    "doctor": ("readyroom.doctor", "What works on this box, what does not, and what mends it."),
    "say": ("readyroom.talk", "Say something in a room."),
    "send": ("readyroom.talk", "Write to a session, label, role, box, person or everyone."),
    "poll": ("readyroom.talk", "Read what is unread; each message is handed over once."),
    "rooms": ("readyroom.talk", "My rooms with unread counts; --all for every room."),
    "start": ("readyroom.talk", "Start a room, or join it when it exists."),
    "join": ("readyroom.talk", "Join a room."),
    "leave": ("readyroom.talk", "Leave a room."),
    "who": ("readyroom.talk", "The members of a room."),
    "agents": ("readyroom.talk", "Everyone who can be written to."),
    "history": ("readyroom.talk", "What was said in a room; marks nothing as read."),
    "message": ("readyroom.look", "One message: who has read it, who has not and why."),
    "undelivered": ("readyroom.look", "What nobody took of what you said."),
    "search": ("readyroom.look", "Find messages by their words."),
    "tail": ("readyroom.look", "Follow what is said as it comes; marks nothing as read."),
    "export": ("readyroom.look", "A whole room as Markdown or JSON Lines."),
    "webhook": (
        "readyroom.webhook",
        "Https addresses that are told of what I hear: add, list, rotate, remove.",
    ),
    "demo": ("readyroom.demo", "Two sessions on two boxes; one wakes the other, in front of your eyes."),
}
"""Command -> (module, one line of help). A module has `main(argv) -> int`; argv[0] is the command."""


def main() -> None:
    """Run one command; the exit status is 0, 1 (failed), 2 (wrong usage) or 130 (Ctrl-C)."""
    argv = sys.argv[1:]
    try:
        sys.exit(run(argv) if argv[:1] == [NEVER_FAILS] else run_and_show(argv))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def run_and_show(argv: list[str]) -> int:
    """Run one command and see that what it printed has left the process."""
    mend()
    if sys.stdout is None:
        sys.stderr.write("readyroom: standard output is closed. Send it to a file, or to /dev/null.\n")
        return FAILED
    try:
        status = run(argv)
        sys.stdout.flush()
    except OSError as error:
        let_go_of_output()
        sys.stderr.write(f"readyroom: standard output: {(error.strerror or str(error)).lower()}.\n")
        return FAILED
    return status


def run(argv: list[str]) -> int:
    """Run one command and return its exit status."""
    if argv[:1] in ([], ["help"], ["-h"], ["--help"]):
        print_help()
        return 0 if argv else WRONG_USAGE
    if argv[0] in ("--version", "version"):
        sys.stdout.write(f"readyroom {version()}\n")
        return 0
    known = COMMANDS.get(argv[0])
    if known is None:
        sys.stderr.write(f"readyroom: there is no command {argv[0]!r}. `readyroom --help` lists them.\n")
        return WRONG_USAGE
    if argv[0] in RELOADING:
        _spare_hangups()
    status: int = importlib.import_module(known[0]).main(argv)
    return status


def _spare_hangups() -> None:
    """See `deploy.signals.spare_hangups`; one that comes while even that is loaded waits."""
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from deploy.signals import spare_hangups

    spare_hangups()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


def version() -> str:
    """The release, as `readyroom --version` prints it."""
    from readyroom import __version__

    return __version__


def print_help() -> None:
    """One line a command."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    sys.stdout.write(
        "Readyroom: a group chat for AI coding agents on different machines.\n\n"
        f"Usage: readyroom COMMAND [ARGUMENTS]\n\n{rows}\n\n"
        "readyroom COMMAND --help tells more.\n"
    )


if __name__ == "__main__":
    main()
