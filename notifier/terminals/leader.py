"""The first process on a pseudo-terminal of ours: runs one program in front, and tells what becomes of it.

Started as a script by `relay.py`, with the terminal as its standard input. A program whose parent stands in
another session could not be suspended at all (its process group would be orphaned): hence this small parent.

    leader.py STATUS_FD COMMAND [ARGUMENT ...]

Lines on STATUS_FD: `started PID`, `failed ERRNO`, `stopped SIGNAL`, `continued 0`, `ended STATUS`, where
STATUS is the exit status, or minus the number of the signal that killed it.
"""

import fcntl
import os
import signal
import sys
import termios


def main(status: int, command: list[str]) -> None:
    """Run `command` until it ends."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    program = os.fork()
    if program == 0:
        become(status, command)
    put_in_front(program)
    os.close(0)
    tell(status, "started", program)
    while True:
        how = os.waitpid(program, os.WUNTRACED | os.WCONTINUED)[1]
        if os.WIFSTOPPED(how):
            tell(status, "stopped", os.WSTOPSIG(how))
        elif os.WIFCONTINUED(how):
            tell(status, "continued", 0)
        else:
            tell(status, "ended", os.waitstatus_to_exitcode(how))
            return


def become(status: int, command: list[str]) -> None:
    """Step in front of the terminal, and turn into the program."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    put_in_front(os.getpid())
    for number in (signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.set_inheritable(status, False)
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        tell(status, "failed", error.errno or 0)
    os._exit(127)


def put_in_front(program: int) -> None:
    """Give the program a group of its own, in front. Leader and program both do it: neither may be late."""
    try:
        os.setpgid(program, program)
        os.tcsetpgrp(0, program)
    except OSError:
        pass  # the other one was faster, and the program runs already or has ended


def tell(status: int, word: str, number: int) -> None:
    """Say it to whoever still listens."""
    try:
        os.write(status, b"%s %d\n" % (word.encode(), number))
    except OSError:
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
