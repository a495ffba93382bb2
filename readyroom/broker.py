"""`readyroom broker`: the embedded nerve alone, for a record that is run elsewhere."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import aiohttp
import structlog
import typer
import uvloop

from broker_bridge.admission import AskTheRecord
from broker_bridge.broker import EmbeddedBroker
from broker_bridge.replicas import Replicas
from deploy.listening import CannotListen, listen, url_of
from deploy.server import RecordFailed, Server
from deploy.signals import StopAsked, StopButton, raising_stop
from notifier.settings import SettingsError, check_url, read_token
from readyroom.entrance import enter
from readyroom.service import fail, log_to, service_settings

RECHECK_SECONDS = 10.0
"""How long a link may stay, at most, when the record could not say that its token was revoked."""

log = structlog.get_logger()

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Run until asked to stop; 1 when it cannot start."""
    return enter(app, argv[1:], name="readyroom broker")


@app.command()
def broker(
    record: Annotated[str, typer.Option(envvar="READYROOM_URL", help="The record, which knows the tokens.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 17352,
    nerve_token_file: Annotated[
        Path | None,
        typer.Option(envvar="READYROOM_NERVE_TOKEN_FILE", help="The token that the record speaks with."),
    ] = None,
) -> None:
    """Carry nudges from the record to the boxes, apart from the record.

    Give the record this broker's address in READYROOM_NERVE_URL, and the same READYROOM_NERVE_TOKEN_FILE.
    Several brokers with one READYROOM_REDIS_URL are one nerve. SIGHUP makes it read the token again, and ask
    the record who may stay. READYROOM_NERVE_PUBLIC_URL, at the record, and all other settings:
    docs/reference/settings.md.
    """
    try:
        check_url(record)
    except SettingsError as error:
        fail(str(error), status=2)
    if nerve_token_file is None:
        fail(
            "Name the file of the record's token: --nerve-token-file F or READYROOM_NERVE_TOKEN_FILE.",
            status=2,
        )
    read_token(nerve_token_file)
    redis = service_settings().redis()
    log_to(sys.stderr)
    try:
        with raising_stop(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(record, host, port, nerve_token_file, redis))
    except (CannotListen, RecordFailed) as error:
        fail(str(error))
    except StopAsked:
        pass


async def _serve(record: str, host: str, port: int, token_file: Path, redis: str | None) -> None:
    with listen(host, port) as listener:
        async with aiohttp.ClientSession() as http:
            door = AskTheRecord(http, record, record_token=read_token(token_file).get_secret_value())
            names = door if redis else None  # several brokers with one Redis have their names in common
            broker = EmbeddedBroker(door=door, recheck_seconds=RECHECK_SECONDS, names=names)
            stop = StopButton(
                again=lambda: server.stop(hurry=True), reload=lambda: _reload(door, broker, token_file)
            )
            nerve = _replicated(broker, redis) if redis else broker
            server = Server(broker.asgi(), listener)
            await nerve.start()
            serving = asyncio.create_task(server.run_until_stopped())
            tasks = {serving, asyncio.create_task(stop.wait())}
            typer.echo(f"The nerve listens at {url_of(listener)}", err=True)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await nerve.close()
            server.stop()
            await serving


def _reload(door: AskTheRecord, broker: EmbeddedBroker, token_file: Path) -> None:
    """Take the token that is in the file now, part with a record that bears another, look at the rest."""
    try:
        door.share(read_token(token_file).get_secret_value())
    except SettingsError:
        log.error("nerve_token_unreadable")
    broker.hang_up(lambda link: link.kind == "record" and link != door.record)
    broker.look_again()
    log.info("reloaded")


def _replicated(broker: EmbeddedBroker, redis: str) -> Replicas:
    from broker_bridge.redis_channel import RedisChannel  # only where it is wanted: it is slow to import

    return Replicas(broker, RedisChannel(redis))
