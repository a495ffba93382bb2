"""What a statement needs in order to run; `api.db` gives it."""

from __future__ import annotations

from typing import Any, Protocol


class Door(Protocol):
    """Runs one statement in a transaction of its own."""

    async def fetch(self, statement: str, *arguments: Any) -> list[Any]:
        """The statement's rows."""


class Reader(Protocol):
    """Runs statements of one reader's transaction, under its lock; $1 is the realm, $2 the agent."""

    async def rows(self, statement: str, *arguments: Any) -> list[Any]:
        """The statement's rows."""

    async def row(self, statement: str, *arguments: Any) -> Any:
        """The first row, or None."""
