"""What the tests with real agent programs may ask for."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real import npm
from tests.real.model import Model, served
from tests.real.need import need
from tests.real.office import Office, opened


@contextmanager
def short_folder() -> Iterator[Path]:
    """A temporary folder with a path that is short enough for sockets, and that others can pass through."""
    path = Path(tempfile.mkdtemp(prefix="rr-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def claude_code() -> Path:
    """The real Claude Code."""
    need("tmux")
    return npm.claude_code()


@pytest.fixture(scope="session")
def codex() -> Path:
    """The real Codex."""
    need("tmux")
    return npm.codex()


@pytest.fixture(scope="session")
def gemini_cli() -> Path:
    """The real Gemini CLI."""
    need("tmux")
    need("node")
    return npm.gemini()


@pytest.fixture
def model() -> Iterator[Model]:
    """A stand-in for the model, of this test alone."""
    with served() as model:
        yield model


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder of this test alone."""
    with short_folder() as path:
        yield path


@pytest.fixture
def room(request: pytest.FixtureRequest) -> str:
    """The name of a room of this test alone; two modules may have tests of one name."""
    name = request.node.name.translate(str.maketrans("_[]", "---"))[-50:].strip("-")
    return f"{name}-{secrets.token_hex(3)}"


@pytest.fixture(scope="session")
def office() -> Iterator[Office]:
    """A running Readyroom."""
    with short_folder() as folder, opened(folder) as office:
        yield office


@pytest.fixture(scope="session")
def typing_office() -> Iterator[Office]:
    """A running Readyroom whose notifier wakes by keys alone."""
    with short_folder() as folder, opened(folder, READYROOM_WAKE="keystrokes") as office:
        yield office
