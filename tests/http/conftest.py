"""A record that runs, for tests that talk to it over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.http.running import Running, running, settings_for


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    """A fresh record with an empty realm `main`."""
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


@pytest.fixture
async def second(record: Running, database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    """Another replica of the same record."""
    async with running(settings_for(database_url, tmp_path)) as replica:
        yield replica
