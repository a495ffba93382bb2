"""A nerve in a process of its own, to be stopped and killed: `python -m tests.contract.lone_broker PORT`."""

from __future__ import annotations

import asyncio
import sys

from tests.contract.nerves import served


async def main() -> None:
    async with served(port=int(sys.argv[1])):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
