"""Keeps python-socketio's own log quiet: it quotes what strangers send."""

from __future__ import annotations

import logging


def quiet() -> logging.Logger:
    """The logger to hand to socket.io servers and clients; ours say what matters themselves."""
    logger = logging.getLogger("readyroom.nerve.sockets")
    logger.setLevel(logging.CRITICAL)
    return logger
