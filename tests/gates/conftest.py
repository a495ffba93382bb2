"""What the tests of the gates share: terminals to wake, and the table at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gates.rigs import Count, PtyRig, TmuxRig, table


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what reached programs at each gate."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    rows = [value for report in reports for name, value in report.user_properties if name == "gate"]
    if rows:
        terminalreporter.section("gates")
        terminalreporter.write_line(table(sorted(map(tuple, rows))))


@pytest.fixture
def count(record_property: Callable[[str, object], None]) -> Count:
    return Count(record_property)


@pytest.fixture
def pty_rig(tmp_path: Path) -> Iterator[Callable[..., PtyRig]]:
    rigs: list[PtyRig] = []

    def make(*options: str, command: list[str] | None = None, around: list[str] | None = None) -> PtyRig:
        rigs.append(PtyRig(tmp_path, *options, command=command, around=around))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.human.close()


@pytest.fixture
def tmux_rig(tmp_path: Path) -> Iterator[Callable[..., TmuxRig]]:
    rigs: list[TmuxRig] = []

    def make(*options: str, shell: bool = False, name: str = "one") -> TmuxRig:
        folder = tmp_path / name
        folder.mkdir()
        rigs.append(TmuxRig(folder, *options, shell=shell))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.server.kill()
