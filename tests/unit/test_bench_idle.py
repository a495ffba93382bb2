"""What the bench says of an idle connection, from what it saw of the record's process."""

from __future__ import annotations

from bench.delays import _idle
from bench.nerve import _each

MIB = 1024 * 1024


def test_many_connections_tell_what_one_costs() -> None:
    each = _each(500, 20, (0.1, 100 * MIB), (10.1, 130 * MIB))
    assert (each.cpu_micros, each.kib) == (1000, 61.44)
    assert "500 idle connections: 1000 µs of processor time a second, 61 KiB of memory" in _idle(each)


def test_too_few_connections_tell_nothing() -> None:
    each = _each(10, 3, (0.12, 100 * MIB), (0.1, 99 * MIB))
    assert (each.cpu_micros, each.kib) == (None, None)
    assert "too few" in _idle(each)


def test_what_one_of_the_two_tells_is_said() -> None:
    assert "too little of processor time a second, 400 KiB" in _idle(_each(5, 3, (0, 0), (0, 2000 * 1024)))
