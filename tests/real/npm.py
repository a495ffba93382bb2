"""Real agent programs from npm, installed once into a cache of this user's."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs

from tests.real.need import missing, need

CLAUDE_CODE = "2.1.332"
CLAUDE_CODE_THAT_WATCHES = "2.1.197"
"""The oldest that was tested to be woken by its own file-change hook."""
CODEX = "0.171.0"
GEMINI = "0.61.0"
NODE = "24.9.0"
"""For what needs a newer one than the machine has."""
CONFORMANCE = "0.2.0-alpha.12"
"""The first that knows revision 2026-07-28."""
INSPECTOR = "2.12.0"
GEMINI_WANTS_NODE = 20
SOCKET_IO_CLIENT = "4.8.3"


def claude_code(version: str = CLAUDE_CODE) -> Path:
    """The native program of a pinned Claude Code."""
    folder = _installed("@anthropic-ai/claude-code", version)
    found = sorted(folder.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
    if not found:
        missing("npm has no native Claude Code for this machine")
    return found[0]


def codex(version: str = CODEX) -> Path:
    """The native program of a pinned Codex."""
    folder = _installed("@openai/codex", version)
    found = sorted(folder.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"))
    if not found:
        missing("npm has no native Codex for this machine")
    return found[0]


def gemini(version: str = GEMINI) -> Path:
    """The program of a pinned Gemini CLI, which Node runs."""
    said = subprocess.run([need("node"), "--version"], capture_output=True, text=True, timeout=20, check=True)
    if int(said.stdout.strip().lstrip("v").partition(".")[0]) < GEMINI_WANTS_NODE:
        missing(f"Gemini CLI wants Node {GEMINI_WANTS_NODE}, and here is {said.stdout.strip()}")
    return _installed("@google/gemini-cli", version) / "node_modules/@google/gemini-cli/bundle/gemini.js"


def node(version: str = NODE) -> Path:
    """A pinned Node."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    name = f"node-{sys.platform}-{machine}"
    return _installed(name, version) / "node_modules" / name / "bin/node"


def mcp_conformance() -> Path:
    """The official conformance suite of MCP, which Node runs."""
    name = "@modelcontextprotocol/conformance"
    return _installed(name, CONFORMANCE) / "node_modules" / name / "dist/index.js"


def mcp_inspector() -> Path:
    """The official Inspector of MCP, which Node runs."""
    name = "@modelcontextprotocol/inspector"
    return _installed(name, INSPECTOR) / "node_modules" / name / "clients/launcher/build/index.js"


def socket_io_client() -> Path:
    """The folder in which Node finds the pinned `socket.io-client`."""
    return _installed("socket.io-client", SOCKET_IO_CLIENT) / "node_modules"


STOCK_NODE_CLIENT = os.environ.get("READYROOM_TEST_NODE_CLIENT", "")
"""The folder of tyo-mq's own Node client: npm does not have it, so somebody has to give it."""


def _installed(package: str, version: str) -> Path:
    cache = platformdirs.user_cache_path("readyroom-tests", ensure_exists=True)
    folder = cache / f"{package.rpartition('/')[2]}-{version}"
    if not folder.exists():
        half = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=cache))
        try:
            _install(f"{package}@{version}", half)
            _move(half, folder)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return folder


def _move(half: Path, folder: Path) -> None:
    try:
        half.rename(folder)
    except OSError:
        if not folder.exists():  # else another run was first
            raise


def _install(package: str, folder: Path) -> None:
    quiet = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts")
    done = subprocess.run(
        [need("npm"), "install", "--prefix", str(folder), *quiet, package],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if done.returncode != 0:
        missing(f"npm could not install {package}: {done.stderr.strip()[-400:]}")
