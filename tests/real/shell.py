"""The shell that an agent program is started from: what it exports, and the program on its path."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

PRIVATE = ("run", "tmp")


def exported(home: Path, *, found_in: Path) -> dict[str, str]:
    """Of the surrounding shell only where programs are: in `found_in`, in the environment, on the machine."""
    places = (str(found_in), str(Path(sys.executable).parent), os.environ["PATH"])
    return {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "TMPDIR": str(home / "tmp"),
        "PATH": os.pathsep.join(places),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/bash",
    }


def make_folders(home: Path, *more: str) -> None:
    """The folders that it names, the project's, and more; those that are there stay."""
    for name in (*PRIVATE, "project", *more):
        (home / name).mkdir(mode=0o700, parents=True, exist_ok=True)


def put_on_path(folder: Path, program: Path, *arguments: str, name: str, typed: Path) -> None:
    """A command that becomes the program, with every byte that is typed at it kept in `typed`."""
    words = (
        sys.executable,
        "-I",
        str(Path(__file__).with_name("counted.py")),
        str(typed),
        str(program),
        *arguments,
    )
    command = folder / name
    folder.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    command.chmod(0o700)
