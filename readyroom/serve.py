"""`readyroom serve`: the record alone, for a database that is run elsewhere."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer
import uvloop
from pydantic import SecretStr

from api.settings import Settings
from deploy.listening import CannotListen, listen, url_of
from deploy.server import RecordFailed, Server
from deploy.signals import StopAsked, StopButton, raising_stop
from readyroom.entrance import enter
from readyroom.service import database_url, fail, log_to, service_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Run until asked to stop; 1 when it cannot start."""
    return enter(app, argv[1:], name="readyroom serve")


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Listen here instead of READYROOM_HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of READYROOM_PORT.")] = None,
) -> None:
    """Run the record, and the embedded nerve unless READYROOM_NERVE_URL names another.

    The database is READYROOM_DATABASE_URL; `readyroom migrate` prepares it. The log goes to standard error.
    SIGHUP makes it find out anew who may be on the nerve, and read READYROOM_NERVE_TOKEN_FILE again.
    READYROOM_NERVE_PUBLIC_URL, READYROOM_REDIS_URL and all other settings: docs/reference/settings.md.
    """
    settings = service_settings(host=host, port=port)
    settings = settings.model_copy(update={"database_url": SecretStr(database_url(settings))})
    log_to(sys.stderr)
    try:
        with raising_stop(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings))
    except (CannotListen, RecordFailed) as error:
        fail(str(error))
    except StopAsked:
        pass


async def _serve(settings: Settings) -> None:
    with listen(settings.host, settings.port) as listener:
        from api.app import create_app  # takes over a second, which nobody waits for who cannot start at all

        reload_wanted = asyncio.Event()
        stop = StopButton(again=lambda: server.stop(hurry=True), reload=reload_wanted.set)
        settings = settings.model_copy(update={"port": listener.getsockname()[1]})
        server = Server(create_app(settings, reload_wanted=reload_wanted), listener)
        record = asyncio.create_task(server.run_until_stopped())
        asked = asyncio.create_task(stop.wait())
        typer.echo(f"The record listens at {url_of(listener)}", err=True)
        await asyncio.wait([record, asked], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        server.stop()
        await record
