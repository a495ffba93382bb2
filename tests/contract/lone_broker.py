"""A nerve in a process of its own, to be stopped and killed: `python -m tests.contract.lone_broker PORT`."""

from __future__ import annotations

import asyncio
import sys

from broker_bridge.limits import Limits
from tests.contract.nerves import served


async def main() -> None:
    unhurried = Limits(bytes_per_second=1e9, bytes_burst=1_000_000_000)
    async with served(port=int(sys.argv[1]), limits=unhurried):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
