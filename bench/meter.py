"""How much of the processor each part took."""

from __future__ import annotations

import contextlib
import resource
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Spent:
    """Seconds of processor time since some moment in the past; differences count.

    Attributes:
        record: the record's process, its embedded nerve in it.
        postgres: the server with all its backends.
        client: the loads, once they have ended.
        machine: everybody on this machine.
    """

    record: float
    postgres: float
    client: float
    machine: float

    def __sub__(self, earlier: Spent) -> Spent:
        return Spent(
            self.record - earlier.record,
            self.postgres - earlier.postgres,
            self.client - earlier.client,
            self.machine - earlier.machine,
        )

    @property
    def foreign(self) -> float:
        """What nobody of ours took."""
        return max(0.0, self.machine - self.record - self.postgres - self.client)


class Meter:
    """Reads the processor time of a record's process and of the PostgreSQL under it."""

    def __init__(self, record_pid: int) -> None:
        self._record = psutil.Process(record_pid)

    def read(self) -> Spent:
        """What has been spent until now."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Spent(
            record=_own(self._record),
            postgres=sum(
                _settled(child) for child in self._record.children() if child.name().startswith("postgres")
            ),
            client=children.ru_utime + children.ru_stime,
            machine=_busy(),
        )


def _own(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _settled(postmaster: psutil.Process) -> float:
    """A backend that ends hands its time to the postmaster: read again if one did while we were reading."""
    while True:
        backends = postmaster.children()
        total = 0.0
        for backend in backends:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += _own(backend)
        times = postmaster.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
        if postmaster.children() == backends:
            return total


def _busy() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))
