"""The record's log: one line an event, past tense, never a body, never a token."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import msgspec
import structlog

from broker_bridge.faults import places


def configure(*, stream: TextIO | None = None, debug: bool = False) -> None:
    """Log to `stream` (stderr unless given): for reading on a terminal, JSON elsewhere.

    What libraries log from warnings upwards comes in the same shape.
    """
    out = stream or sys.stderr
    shape: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer()
        if out.isatty()
        else structlog.processors.JSONRenderer(serializer=_as_json)
    )
    common: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(places),
    ]
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *common, shape],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if debug else logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=True,
    )
    foreign = logging.StreamHandler(out)
    foreign.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=common,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, shape],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[foreign], force=True)


def _as_json(event: object, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()
