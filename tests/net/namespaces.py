"""Two places with a road between them, in network namespaces of the kernel; the road can be closed.

A namespace lives as long as a process in it. As root they are made as they are; anybody else makes a user
namespace around them first, where the kernel lets them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from tests.real.need import missing, need

FAR, NEAR = "10.77.1", "10.77.2"
"""The networks of the two places; .1 is the road's end, .2 who lives there."""

FORWARD = "/proc/sys/net/ipv4/ip_forward"
AS_ROOT = os.geteuid() == 0


@dataclass(frozen=True)
class Road:
    """Leads from `near` to `far`, each the words before a command that is to run there.

    Attributes:
        host: the far place's address.
    """

    far: tuple[str, ...]
    near: tuple[str, ...]
    between: tuple[str, ...]
    host: str = f"{FAR}.2"

    def close(self) -> None:
        """Drop every packet, both ways, without a word to anybody."""
        self._forward(0)

    def open(self) -> None:
        """Carry packets again."""
        self._forward(1)

    def _forward(self, whether: int) -> None:
        _run(*self.between, "sh", "-c", f"echo {whether} > {FORWARD}")


@contextmanager
def road() -> Iterator[Road]:
    """Make it, open. Skips, loudly, where the kernel cannot."""
    _need_kernel()
    with ExitStack() as undo:
        far = _place(undo, ())
        around = () if AS_ROOT else far[:-1]
        near, between = (_place(undo, around) for _ in range(2))
        for there, network, name in ((far, FAR, "far"), (near, NEAR, "near")):
            pid = there[there.index("--target") + 1]
            _run(*between, "ip", "link", "add", name, "type", "veth", "peer", "name", "road", "netns", pid)
            _settle(between, name, f"{network}.1/24")
            _settle(there, "road", f"{network}.2/24")
            _run(*there, "ip", "route", "add", "default", "via", f"{network}.1")
        made = Road(far, near, between)
        made.open()
        yield made


def _need_kernel() -> None:
    """Skip where the kernel has no namespaces for us; a promise of tools is no promise of those."""
    if not sys.platform.startswith("linux"):
        pytest.skip("NOT RUN: network namespaces are Linux's")
    need("unshare")
    need("nsenter")
    probe = [*_unshare(), "sh", "-c", f"ip link add probe type veth && echo 1 > {FORWARD}"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    if "ip: not found" in done.stderr:
        missing("ip is not installed")
    if done.returncode:
        pytest.skip(f"NOT RUN: this kernel gives us no network namespaces of our own: {done.stderr.strip()}")


def _unshare() -> list[str]:
    return ["unshare", *([] if AS_ROOT else ["--user", "--map-root-user"]), "--net"]


def _place(undo: ExitStack, around: Sequence[str]) -> tuple[str, ...]:
    """A new namespace, in the user namespace that `around` leads to; the words that lead into it."""
    command = [*around, "unshare", "--net"] if around else _unshare()
    keeper = subprocess.Popen(
        [*command, "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    undo.enter_context(keeper)
    undo.callback(keeper.kill)
    assert keeper.stdout is not None
    assert keeper.stdout.readline()
    user = () if AS_ROOT else ("--user", "--preserve-credentials")
    return ("nsenter", "--target", str(keeper.pid), *user, "--net")


def _settle(there: Sequence[str], device: str, address: str) -> None:
    _run(*there, "ip", "addr", "add", address, "dev", device)
    for each in ("lo", device):
        _run(*there, "ip", "link", "set", each, "up")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
