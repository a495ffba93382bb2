"""The notifier's ear finds the nerve, stays with it, and follows it, whatever the record says meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from notifier.daemon import ear
from notifier.daemon.ear import Ear
from notifier.record import Record
from tests.contract.nerves import free_port, served, until


@dataclass
class Answers:
    """Stands where the record is, and says where the nerve is, or nothing; it counts who asked."""

    nerve: str | None = None
    asked: int = 0
    heard: list[bool] = field(default_factory=list)

    async def answer(self, _: web.Request) -> web.Response:
        self.asked += 1
        return web.json_response({"url": self.nerve}) if self.nerve else web.Response(status=502)


@contextlib.asynccontextmanager
async def listens(answers: Answers) -> AsyncIterator[Ear]:
    """An ear at work."""
    app = web.Application()
    app.router.add_get("/v1/nerve", answers.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    async with Record(f"http://127.0.0.1:{port}", "tok-work3", patience=0) as record:
        it = Ear(record, "tok-work3", on_nudge=_ignore, on_heard=lambda: answers.heard.append(True))
        listening = asyncio.create_task(it.run())
        try:
            yield it
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await runner.cleanup()


def _ignore(*_: Any) -> None: ...


@pytest.mark.long
async def test_it_asks_every_second_or_so_until_the_record_says_where_the_nerve_is() -> None:
    answers = Answers()
    async with served() as (_, url), listens(answers) as it:
        await until(lambda: answers.asked == 8, "questions")
        assert it.trouble == "not reached yet"
        answers.nerve = url
        began = asyncio.get_running_loop().time()
        await until(lambda: it.hears, "the nerve")
        assert asyncio.get_running_loop().time() - began < 15


async def test_deaf_for_long_it_hears_a_nerve_that_is_back_while_the_record_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ear, "ASK_ANEW_SECONDS", 0.1)
    port = free_port()
    answers = Answers(f"http://127.0.0.1:{port}")
    async with listens(answers) as it:
        async with served(port=port):
            await until(lambda: it.hears, "the nerve")
        answers.nerve = None
        before = answers.asked
        await until(lambda: answers.asked >= before + 2, "questions")
        async with served(port=port):
            await until(lambda: it.hears, "the nerve again")
        assert answers.heard == [True, True]


async def test_deaf_for_long_it_follows_a_nerve_that_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ear, "ASK_ANEW_SECONDS", 0.1)
    answers = Answers()
    async with listens(answers) as it:
        async with served() as (_, first):
            answers.nerve = first
            await until(lambda: it.hears, "the nerve")
        async with served() as (_, second):
            answers.nerve = second
            await until(lambda: it.hears and it.url == second, "the nerve elsewhere")
