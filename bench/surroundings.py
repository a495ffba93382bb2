"""What the figures depend on: the machine, the disk, the server's settings, the versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from bench.database import value
from bench.load import LoadFailed
from bench.machine import Machine

FLUSHES = 300
PAGE = b"\0" * 8192
DURABLE = ("fsync", "full_page_writes")
SETTINGS = (*DURABLE, "synchronous_commit", "wal_sync_method", "shared_buffers", "max_wal_size")
PACKAGES = ("asyncpg", "msgspec", "uvicorn", "uvloop", "httptools")
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


def surroundings(machine: Machine) -> dict[str, str]:
    """Facts for the reader of the figures, in words.

    Raises:
        LoadFailed: commits would not be on disk, so there is nothing to compare.
    """
    settings = {name: str(value(machine.dsn, f"SHOW {name}")) for name in SETTINGS}
    if settings["synchronous_commit"] == "off" or any(settings[name] != "on" for name in DURABLE):
        raise LoadFailed(f"Commits are not durable here: {settings}")
    file_system = _file_system(machine.folder)
    return {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "file system": file_system + (", IN MEMORY: no flush" if file_system in MEMORY_FILE_SYSTEMS else ""),
        "fdatasync of 8 KiB": f"{flush_micros(machine.folder):.0f} µs (median of {FLUSHES})",
        "PostgreSQL": f"{value(machine.dsn, 'SHOW server_version')}, over its Unix socket",
        "settings": ", ".join(f"{name}={setting}" for name, setting in settings.items()),
        "Python": f"{platform.python_version()}, "
        + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES),
        "commit": commit(),
    }


def flush_micros(folder: Path) -> float:
    """How long a small write takes to reach the disk: what each commit waits for."""
    taken = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(FLUSHES):
            os.pwrite(file.fileno(), PAGE, 0)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - begun)
    return 1e6 * statistics.median(taken)


def commit() -> str:
    """The repository's commit, with a + when files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _file_system(folder: Path) -> str:
    mounts = [part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype
