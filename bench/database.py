"""A look into the record's database, beside the record."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg


async def rows(dsn: str, statement: str, *arguments: Any) -> list[Any]:
    """Run one statement on a connection of its own."""
    connection = await asyncpg.connect(dsn)
    try:
        found: list[Any] = await connection.fetch(statement, *arguments)
        return found
    finally:
        await connection.close()


def value(dsn: str, statement: str, *arguments: Any) -> Any:
    """The first column of the first row; None when there is no row."""
    found = asyncio.run(rows(dsn, statement, *arguments))
    return found[0][0] if found else None
