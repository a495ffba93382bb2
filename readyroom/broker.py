"""`readyroom broker`: the embedded nerve alone, for a record that is run elsewhere."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import aiohttp
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
    Several brokers with one READYROOM_REDIS_URL are one nerve.
    """
    try:
        check_url(record)
    except SettingsError as error:
        fail(str(error), status=2)
    token = read_token(nerve_token_file).get_secret_value() if nerve_token_file else None
    redis = service_settings().redis()
    log_to(sys.stderr)
    try:
        with raising_stop(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(record, host, port, token, redis))
    except (CannotListen, RecordFailed) as error:
        fail(str(error))
    except StopAsked:
        pass


async def _serve(record: str, host: str, port: int, token: str | None, redis: str | None) -> None:
    with listen(host, port) as listener:
        stop = StopButton(again=lambda: server.stop(hurry=True))
        async with aiohttp.ClientSession() as http:
            admission = AskTheRecord(http, record, record_token=token)
            broker = EmbeddedBroker(admit=admission.admit)
            nerve = _replicated(broker, redis) if redis else broker
            server = Server(broker.asgi(), listener)
            await nerve.start()
            serving = asyncio.create_task(server.run_until_stopped())
            tasks = {serving, asyncio.create_task(stop.wait())}
            rechecking = asyncio.create_task(admission.recheck(broker.hang_up))
            typer.echo(f"The nerve listens at {url_of(listener)}", err=True)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            rechecking.cancel()
            await nerve.close()
            server.stop()
            await serving


def _replicated(broker: EmbeddedBroker, redis: str) -> Replicas:
    from broker_bridge.redis_channel import RedisChannel  # only where it is wanted: it is slow to import

    return Replicas(broker, RedisChannel(redis))
