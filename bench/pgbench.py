"""pgbench, PostgreSQL's own load: what the database could do if nothing stood in front of it."""

from __future__ import annotations

import math
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.load import Load, LoadFailed
from deploy.programs import find

SQL = Path(__file__).with_name("sql")
GRACE_SECONDS = 30
_DONE = re.compile(r"number of transactions actually processed: (\d+)")
_RATE = re.compile(r"tps = ([0-9.]+) \(without initial connection time\)")


def run(dsn: str, script: str, variables: Mapping[str, int | str], *, clients: int, seconds: int) -> Load:
    """Run one of the scripts of `sql/` with prepared statements for so long.

    Raises:
        LoadFailed: a transaction failed, or pgbench did.
    """
    threads = min(clients, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="readyroom-pgbench-") as folder:
        command = [str(find(None).folder / "pgbench"), "-n", "-M", "prepared", "-f", str(SQL / script)]
        command += [f"-c{clients}", f"-j{threads}", f"-T{seconds}", "-l", f"--log-prefix={folder}/times"]
        command += [part for name, value in variables.items() for part in ("-D", f"{name}={value}")]
        done = subprocess.run(
            [*command, dsn], capture_output=True, text=True, check=False, timeout=seconds + GRACE_SECONDS
        )
        if done.returncode or "ERROR" in done.stderr:
            raise LoadFailed(f"pgbench ended with status {done.returncode}: {done.stderr[-500:]}")
        return parsed(done.stdout, latencies(Path(folder)))


def latencies(folder: Path) -> list[float]:
    """Every transaction's milliseconds, in ascending order, from the logs that pgbench wrote."""
    return sorted(
        int(line.split(" ", 3)[2]) / 1000
        for log in folder.iterdir()
        for line in log.read_text(encoding="ascii").splitlines()
    )


def parsed(output: str, milliseconds: list[float]) -> Load:
    """Read the summary that pgbench prints.

    Args:
        output: its standard output.
        milliseconds: each transaction's time, in ascending order.

    Raises:
        LoadFailed: there is none in it.
    """
    count, rate = _DONE.search(output), _RATE.search(output)
    if not count or not rate or not milliseconds:
        raise LoadFailed(f"pgbench did not say how it went: {output[-500:]}")
    operations = int(count[1])
    return Load(operations, operations / float(rate[1]), rank(milliseconds, 0.5), rank(milliseconds, 0.99))


def rank(ascending: list[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]
