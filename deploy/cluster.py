"""A cluster on disk: making a new one, and ending a server of it that an earlier owner left running."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

from deploy.children import command_of, exists
from deploy.places import Places, own_folder
from deploy.programs import Programs

INITDB = "initdb -U postgres -A trust -E UTF8 --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C"
FIRST_SQL = "CREATE ROLE readyroom LOGIN;\nCREATE DATABASE readyroom OWNER readyroom;\n"
STOP_SECONDS = 10
PAUSE_SECONDS = 0.01


def make(places: Places, programs: Programs) -> None:
    """Make the cluster with the product's role and database. It is there whole, or not at all."""
    fresh = places.home / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    own_folder(fresh, programs.account)
    programs.run([*INITDB.split(), "-D", str(fresh)])
    programs.run(["postgres", "--single", "-D", str(fresh), "postgres"], text=FIRST_SQL)
    fresh.rename(places.cluster)
    folder = os.open(places.home, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def pid_file(cluster: Path) -> list[str]:
    """The lines of the cluster's postmaster.pid; none when there is no server."""
    try:
        return (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def end_leftover(cluster: Path) -> None:
    """End a server of this cluster that still runs, gently first; the caller must hold the cluster's lock.

    A postmaster.pid whose process is something else by now, or dead and never collected, is removed:
    PostgreSQL itself would take it for a running server.
    """
    signals = iter((signal.SIGINT, signal.SIGQUIT, signal.SIGKILL))
    until = 0.0
    while (pid := _server(cluster)) is not None:
        if time.monotonic() > until:
            os.kill(pid, next(signals, signal.SIGKILL))
            until = time.monotonic() + STOP_SECONDS
        time.sleep(PAUSE_SECONDS)
    lines = pid_file(cluster)
    if lines and exists(int(lines[0])):
        (cluster / "postmaster.pid").unlink()


def _server(cluster: Path) -> int | None:
    lines = pid_file(cluster)
    pid = int(lines[0]) if lines and lines[0].isdigit() else 0
    return pid if pid > 1 and f" -D {cluster} " in f"{command_of(pid)} " else None
