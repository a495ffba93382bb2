"""The notifier's log: one line an event, past tense, never a body, never a token."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog

from broker_bridge.faults import places


def configure(*, stream: TextIO | None = None, debug: bool = False) -> None:
    """Log to `stream` (stderr unless given): for reading on a terminal, JSON elsewhere."""
    out = stream or sys.stderr
    shape: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if out.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(places),
            shape,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if debug else logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
