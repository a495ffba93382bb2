"""A nerve with all it keeps in PostgreSQL, in a process that stands still at one moment, to be killed there.

`python -m tests.contract.keeper PORT DATABASE [MOMENT]`; a moment is a method of the store, done but not
answered yet, or `before ` one. It says so on its standard output.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from api.db import Database
from api.services.nerve_names import NerveNames
from api.services.nerve_queues import NerveQueues
from tests.contract.nerves import served


class StandsStill(NerveQueues):
    """Does what it is asked, but says nothing from one moment on."""

    def __init__(self, db: Database, moment: str) -> None:
        super().__init__(db)
        early, moment = moment.startswith("before "), moment.removeprefix("before ")
        done = getattr(self, moment)

        async def stand_still(*asked: Any, **options: Any) -> Any:
            answer = None if early else await done(*asked, **options)
            if answer is None or moment != "take" or answer.messages:
                sys.stdout.write("reached\n")
                sys.stdout.flush()
                await asyncio.Event().wait()
            return answer

        setattr(self, moment, stand_still)


async def main() -> None:
    port, dsn, *moment = sys.argv[1:]
    db = Database(dsn)
    store = StandsStill(db, moment[0]) if moment else NerveQueues(db)
    async with served(port=int(port), store=store, names=NerveNames(db)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
