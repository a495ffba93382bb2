"""`readyroom run` without a record: the relay and its socket alone.

bare_run.py SOCKET COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from notifier.terminals.door import door
from notifier.terminals.outer import Outer
from notifier.terminals.relay import Relay


async def run(path: str, command: list[str]) -> int:
    relay = Relay(command, environ=os.environ, outer=Outer())
    async with door(path, relay.terminal, ring=relay.ring, hold_of=relay.hold_of):
        return await relay.run()


def main() -> None:
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        sys.exit(runner.run(run(sys.argv[1], sys.argv[2:])))


if __name__ == "__main__":
    main()
