"""Only the pane that a session was started in is typed to, while tmux passes keys on to it alone."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from notifier.sessions import Process, Session, TmuxPane
from notifier.terminals.base import closed_gate
from notifier.terminals.tmux import TmuxTerminal
from notifier.wakers.keystrokes import Tmux
from tests.contract.terminals import (
    Record,
    needs_tmux,
    tui,
    until,
)
from tests.gates.rigs import LINE, Count, TmuxRig, standing


@needs_tmux
def test_tmux_a_pane_that_is_gone_and_one_that_is_dead_take_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    rig.server.ask("set-option", "-w", "-t", rig.pane, "remain-on-exit", "on")
    rig.keys("C-d", literal=False)
    # Not its notice, which tmux writes once it has reaped the program: sometimes only when another one ends.
    dead = ("display-message", "-p", "-t", rig.pane, "#{pane_dead}")
    until(lambda: rig.server.ask(*dead) == "1", "the end of the pane's program")
    count.zero(
        "tmux",
        "the pane is dead",
        hold := count.wake(rig.waker, rig.session),
        rig.record.bytes.removesuffix(b"\x04"),
    )
    assert hold == "pane gone"
    rig.server.new("keeps the server", "exec cat")
    rig.server.ask("kill-pane", "-t", rig.pane)
    count.zero(
        "tmux",
        "the pane is gone",
        hold := count.wake(rig.waker, rig.session),
        rig.record.bytes.removesuffix(b"\x04"),
    )
    assert hold == "pane gone"


@needs_tmux
def test_tmux_after_a_restart_of_the_server_the_same_pane_number_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    rig.server.kill()
    until(lambda: standing(rig.process) == "", "the end of the first program")
    assert count.wake(rig.waker, rig.session) == "pane gone"
    rig.record.path.unlink(missing_ok=True)
    assert rig.server.new("new", f"exec {shlex.join(tui(rig.record))}") == rig.pane
    until(lambda: rig.server.screen(rig.pane) == ">", "the second program")
    old, rig.process = rig.process, rig.server.process(rig.pane)
    hold = count.settled(rig.waker, rig.session)
    count.zero("tmux", "the server was restarted: pane number", hold, rig.stray("!", b""))
    assert hold == "pane gone"
    rig.tmux, rig.process = rig.server.pane(rig.pane), old
    hold = count.settled(Tmux(), rig.session)
    count.zero("tmux", "the server was restarted: process", hold, rig.stray("!", b"!"))
    assert hold == "process gone"


@needs_tmux
def test_tmux_copy_mode_and_switched_off_input_hold(tmux_rig: Callable[..., TmuxRig], count: Count) -> None:
    rig = tmux_rig()
    rig.server.ask("copy-mode", "-t", rig.pane)
    hold = count.settled(rig.waker, rig.session)
    assert rig.server.ask("display-message", "-p", "-t", rig.pane, "#{pane_in_mode}") == "1"
    rig.server.ask("send-keys", "-t", rig.pane, "-X", "cancel")
    count.zero("tmux", "copy mode", hold, rig.stray("!", b""))
    assert hold == "copy mode"
    rig.server.ask("send-keys", "-t", rig.pane, "BSpace")
    until(lambda: rig.server.screen(rig.pane) == ">", "an empty composer")
    rig.server.ask("select-pane", "-d", "-t", rig.pane)
    hold = count.settled(rig.waker, rig.session)
    rig.server.ask("select-pane", "-e", "-t", rig.pane)
    count.zero("tmux", "input switched off", hold, rig.stray("!", b"!\x7f"))
    assert hold == "input off"


@needs_tmux
def test_tmux_synchronised_panes_hold_and_no_neighbour_gets_anything(
    tmux_rig: Callable[..., TmuxRig], tmp_path: Path, count: Count
) -> None:
    rig = tmux_rig()
    neighbour = Record(tmp_path / "neighbour")
    rig.server.ask("split-window", "-t", rig.pane, f"exec {shlex.join(tui(neighbour))}")
    rig.server.ask("set-option", "-w", "-t", rig.pane, "synchronize-panes", "on")
    hold = count.settled(rig.waker, rig.session)
    assert hold == "synchronised panes"
    rig.server.ask("set-option", "-w", "-t", rig.pane, "synchronize-panes", "off")
    count.zero("tmux", "synchronised panes", hold, rig.stray("!", b"") + neighbour.bytes)


@needs_tmux
def test_tmux_the_pane_that_has_the_focus_gets_nothing_meant_for_another(
    tmux_rig: Callable[..., TmuxRig], tmp_path: Path, count: Count
) -> None:
    rig = tmux_rig()
    focused = Record(tmp_path / "focused")
    pane = rig.server.ask(
        *("split-window", "-t", rig.pane, "-P", "-F", "#{pane_id}", f"exec {shlex.join(tui(focused))}")
    )
    until(lambda: rig.server.screen(pane) == ">", "the neighbour")
    hold = count.settled(rig.waker, rig.session)
    rig.server.shows(rig.pane, "submitted: /catchup")
    count.typed("tmux", "another pane has the focus: ours", hold, rig.record.bytes)
    rig.keys("!", pane=pane)
    until(lambda: focused.bytes.endswith(b"!"), "the sentinel")
    count.tried()
    count.zero("tmux", "another pane has the focus: that one", hold, focused.bytes[:-1])


@needs_tmux
def test_tmux_a_session_whose_name_begins_alike_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], tmp_path: Path, count: Count
) -> None:
    rig = tmux_rig()
    alike = Record(tmp_path / "alike")
    pane = rig.server.new("work-2", f"exec {shlex.join(tui(alike))}")
    until(lambda: rig.server.screen(pane) == ">", "the namesake")
    rig.server.ask("kill-session", "-t", "=work")
    hold = count.settled(rig.waker, rig.session)
    rig.keys("!", pane=pane)
    until(lambda: alike.bytes.endswith(b"!"), "the sentinel")
    count.zero("tmux", "only a session of a longer name is left", hold, alike.bytes[:-1])
    assert hold == "pane gone"


@needs_tmux
def test_tmux_a_gate_that_closes_between_look_and_paste_holds(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    terminal = TmuxTerminal(rig.tmux, process=rig.process, program="plain")

    count.tried()

    async def race() -> str | None:
        assert closed_gate(await terminal.look()) is None
        rig.server.ask("copy-mode", "-t", rig.pane)
        return await terminal.paste(LINE)

    hold = asyncio.run(race())
    rig.server.ask("send-keys", "-t", rig.pane, "-X", "cancel")
    count.zero("tmux", "copy mode, entered in the last moment", hold, rig.stray("!", b""))
    assert rig.server.ask("list-buffers") == ""


@needs_tmux
def test_tmux_a_server_that_does_not_exist_is_a_gone_pane(tmp_path: Path, count: Count) -> None:
    session = Session(
        agent="work-agent#1",
        program="plain",
        process=Process(os.getpid(), 1),
        tmux=TmuxPane(str(tmp_path / "none.sock"), 1, "%0"),
    )
    assert count.wake(Tmux(), session) == "pane gone"
    assert not (tmp_path / "none.sock").exists()
