"""Standard input, output and error, which whoever starts the program may have closed."""

from __future__ import annotations

import os
import sys


def mend() -> None:
    """Stand the null device in for a closed standard input or error, so that no socket takes its number."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def let_go_of_output() -> None:
    """What could not be written is not tried again when the process ends."""
    if (out := sys.__stdout__) is not None and out is sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
