"""`python -m api`: the record alone, as a container runs it."""

from __future__ import annotations

import uvicorn

from api import logs
from api.app import create_app
from api.settings import Settings
from broker_bridge.guard import UVICORN


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
        **UVICORN,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
