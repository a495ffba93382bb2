"""`python -m api`: the record alone, as a container runs it."""

from __future__ import annotations

import uvicorn

from api import logs
from api.app import create_app
from api.settings import Settings


def main() -> None:
    """Serve until a signal comes; calls that still wait then have three seconds."""
    settings = Settings()
    logs.configure()
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="wsproto",
        ws_max_size=2 * 1024 * 1024,
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,  # clients give an idle connection up first
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
