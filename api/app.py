"""The composition root: builds every part of the record and hands it down."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any

import structlog
from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from api import problems
from api.auth import Auth
from api.db import Database
from api.egress import Allowed, Egress
from api.mcp.server import McpFace
from api.routes import (
    admin,
    agents,
    docs_page,
    health,
    identity,
    invites,
    lane,
    messages,
    nerve,
    nerve_tokens,
    rooms,
    webhooks,
)
from api.routes.answered import Answered
from api.routes.document import complete, describe_answers
from api.routes.front import MCP, Front, refuse_nul
from api.routes.lane import Lane, refuse_other_methods
from api.routes.wire import plain
from api.services.admissions import Admissions
from api.services.announcing import Announcements
from api.services.closing import Closing
from api.services.drafts import refusal
from api.services.feed import Feeds
from api.services.identity import Gone, Identity
from api.services.invites import Redeeming
from api.services.limits import Rate
from api.services.messages import SEARCHES_AT_ONCE, Messages
from api.services.metrics import Metrics
from api.services.nerve_names import NerveNames
from api.services.nerve_queues import NerveQueues
from api.services.reading import Reading
from api.services.record import Record
from api.services.relations import Relations
from api.services.replicas import NotifyChannel
from api.services.retention import Retention
from api.services.rooms import Rooms
from api.services.saying import Sayings
from api.services.schemas import Schemas
from api.services.system import SystemVoice
from api.services.waiting import Waits
from api.services.webhooks import Webhooks
from api.settings import Settings, read_secret
from broker_bridge.broker import EmbeddedBroker
from broker_bridge.channel import Channel
from broker_bridge.nerve import Admission, Nerve
from broker_bridge.replicas import Replicas
from broker_bridge.tyo_mq import TyoMqNerve

log = structlog.get_logger()

LARGEST_REQUEST = 4 * 1024 * 1024
"""Bytes. More than the largest message, however its characters are escaped."""

REDEEM_PER_SECOND, REDEEM_BURST = 1, 20
"""What one address may try. Codes are beyond guessing; this keeps the database out of it."""


def create_app(settings: Settings, *, reload_wanted: asyncio.Event | None = None) -> ASGIApp:
    """The whole service as one ASGI app: REST, MCP, and the nerve unless it is elsewhere.

    Whenever `reload_wanted` is set, it finds out anew whose token is valid, and reads its own for the nerve.

    Nothing is connected before the app's lifespan begins, and it begins without PostgreSQL, too.

    Raises:
        ValueError: no database is named.
    """
    db = _database(settings)
    metrics = Metrics()
    who = Identity(db, metrics, handles_per_box=settings.handles_per_box)
    queues, admissions, names = NerveQueues(db), Admissions(db), NerveNames(db)
    reloads = [who.look_again]
    broker = None if settings.nerve_url else _embedded(who, admissions, queues, names)
    voice: Nerve = Replicas(broker, _channel(settings, db)) if broker else _elsewhere(settings, who, reloads)
    metrics.watch_nerve(lambda: voice.dropped)
    announcements = Announcements(db, voice)
    reading = Reading(db, announcements, page_max=settings.page_max)
    system = SystemVoice(db, announcements)
    rooms_ = Rooms(
        db,
        stale_seconds=settings.presence_stale_seconds,
        rooms_per_realm=settings.rooms_per_realm,
        members_per_room=settings.members_per_room,
    )
    record = Record(
        settings=settings,
        db=db,
        nerve=voice,
        metrics=metrics,
        identity=who,
        admissions=admissions,
        rooms=rooms_,
        messages=_messages(settings, rooms_, reading, announcements, system),
        reading=reading,
        closing=Closing(db, system=system, identity=who, retire_after_seconds=settings.retire_after_seconds),
        webhooks=_webhooks(settings, db, system=system, metrics=metrics),
        redeeming=Redeeming(
            db, Rate("redeem", what="codes", per_second=REDEEM_PER_SECOND, burst=REDEEM_BURST)
        ),
        queues=queues,
        names=names,
    )
    announcements.on_said(record.webhooks.moved)
    pace = Rate("box", what="requests", per_second=settings.box_per_second, burst=settings.box_burst)
    auth = Auth(
        who,
        rate=pace,
        admin_token_file=settings.admin_token_file,
        nerve_token_file=settings.nerve_token_file,
    )
    retention = Retention(db, keep_days=settings.keep_days)
    background: list[Callable[[], Awaitable[None]]] = [
        who.run,
        announcements.run,
        record.closing.run,
        record.webhooks.run,
        retention.run,
        queues.run,
    ]
    if reload_wanted is not None:
        background.append(_reloading(reload_wanted, reloads))
    waits = Waits(settings.waiting_calls)
    mcp = McpFace(record, waits, path=MCP, names=settings.names(), version=version("readyroom"))
    api = _rest(record, background=background, mcp=mcp)
    app = Front(api, auth=auth, guarded_metrics=not _is_loopback(settings.host), max_bytes=LARGEST_REQUEST)
    quick = Lane(
        app,
        auth=auth,
        messages=record.messages,
        reading=record.reading,
        feeds=Feeds(db, announcements, page_max=settings.page_max),
        waits=waits,
        max_bytes=LARGEST_REQUEST,
    )
    who.on_gone(waits.end)
    refuse_other_methods(api.router.routes, quick.operations)
    api.openapi = lambda: _document(api, quick)  # type: ignore[method-assign]
    answered = Answered(quick, operations=quick.operations, metrics=metrics)
    return broker.asgi(answered) if broker else answered


def _database(settings: Settings) -> Database:
    share = settings.database_connections - 3 - SEARCHES_AT_ONCE  # three more hear and send NOTIFYs
    cold = max(1, share * 2 // 5)
    hot = max(1, share - cold)
    return Database(settings.database_dsn(), hot=hot, cold=cold, aside=SEARCHES_AT_ONCE)


def _messages(
    settings: Settings, rooms_: Rooms, reading: Reading, announcements: Announcements, system: SystemVoice
) -> Messages:
    db = rooms_.db
    sayings = Sayings(db, stale_seconds=settings.presence_stale_seconds, refusal=refusal)
    return Messages(
        rooms=rooms_,
        reading=reading,
        sayings=sayings,
        announcements=announcements,
        relations=Relations(db, Schemas()),
        system=system,
        rate=Rate("say", what="messages", per_second=settings.say_per_second, burst=settings.say_burst),
        urgent_rate=Rate(
            "urgent",
            what="urgent messages",
            per_second=settings.urgent_per_second,
            burst=settings.urgent_burst,
        ),
        body_max_bytes=settings.body_max_bytes,
        payload_max_bytes=settings.payload_max_bytes,
        stale_seconds=settings.presence_stale_seconds,
    )


def _webhooks(settings: Settings, db: Database, *, system: SystemVoice, metrics: Metrics) -> Webhooks:
    return Webhooks(
        db,
        system=system,
        sender=Egress(Allowed.parse(settings.webhook_allow or "")),
        metrics=metrics,
        most=settings.webhooks_per_agent,
        retry_seconds=settings.webhook_retry_seconds,
        give_up_seconds=settings.webhook_give_up_seconds,
    )


def _embedded(
    who: Identity, admissions: Admissions, queues: NerveQueues, names: NerveNames
) -> EmbeddedBroker:
    broker = EmbeddedBroker(door=admissions, store=queues, names=names)
    queues.on_revived(broker.wake)

    def is_over(link: Admission, gone: Gone) -> bool:
        holder = link.name if link.kind == "holder" else ""
        return gone.covers(realm=link.realm, name=holder, token_id=link.token_id)

    def part(gone: Gone) -> None:
        if gone.valid is None:
            broker.hang_up(lambda link: is_over(link, gone))
        else:  # it speaks of boxes and people alone
            broker.look_again()

    who.on_gone(part)
    return broker


def _channel(settings: Settings, db: Database) -> Channel:
    redis = settings.redis()
    if redis is None:
        return NotifyChannel(db)
    from broker_bridge.redis_channel import RedisChannel  # costs a fifth of a second, and few name one

    return RedisChannel(redis)


def _elsewhere(settings: Settings, who: Identity, reloads: list[Callable[[], None]]) -> TyoMqNerve:
    assert settings.nerve_url is not None
    file = settings.nerve_token_file
    nerve = TyoMqNerve(settings.nerve_url, read_secret(file) if file else "")

    def renew() -> None:
        try:
            token = read_secret(file) if file else ""
        except (OSError, UnicodeDecodeError) as error:
            log.error("nerve_token_unreadable", error=type(error).__name__)
            return
        if file and not token:
            log.error("nerve_token_unreadable", error="Empty")
        else:
            nerve.renew(token)

    reloads.append(renew)
    who.on_gone(lambda _: nerve.look_again())
    return nerve


def _reloading(wanted: asyncio.Event, reloads: list[Callable[[], None]]) -> Callable[[], Awaitable[None]]:
    async def reload() -> None:
        while True:
            await wanted.wait()
            wanted.clear()
            for each in reloads:
                each()
            log.info("reloaded")

    return reload


def _rest(record: Record, *, background: Sequence[Callable[[], Awaitable[None]]], mcp: McpFace) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(_keep(run)) for run in background]
        await record.nerve.start()
        try:
            async with mcp.running():
                yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await record.nerve.close()
            await record.db.close()

    app = FastAPI(
        title="Readyroom",
        version=version("readyroom"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.record = record
    problems.install(app)
    app.router.routes.extend(_routes())
    app.include_router(docs_page.routes(lambda: app.openapi()), dependencies=[Depends(refuse_nul)])
    app.router.routes.append(mcp.route)
    return app


@functools.cache
def _routes() -> list[BaseRoute]:
    """The routes that all records of a process have in common: FastAPI takes a tenth of a second for them."""
    router = APIRouter(dependencies=[Depends(refuse_nul)])
    router.include_router(health.router)
    for module in (identity, agents, rooms, messages, nerve, webhooks, admin, nerve_tokens, invites):
        router.include_router(module.router, dependencies=[Depends(plain)])
    return router.routes


async def _keep(run: Callable[[], Awaitable[None]]) -> None:
    """Run for ever; what fails is logged and begins again."""
    while True:
        try:
            await run()
        except Exception:
            log.exception("background_failed", task=run.__qualname__)
        await asyncio.sleep(1)


def _document(app: FastAPI, quick: Lane) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, openapi_version=app.openapi_version, routes=app.routes
        )
        lane.describe(document, quick.operations)
        describe_answers(document, rooms.ANSWERS | messages.ANSWERS)
        app.openapi_schema = complete(document)
    return app.openapi_schema


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
