"""One message of another program, as its producer meant it."""

from __future__ import annotations

from dataclasses import dataclass

from broker_bridge import frames
from broker_bridge.queues import lifetime
from broker_bridge.subscriptions import fold


@dataclass(frozen=True, slots=True)
class Said:
    """What a producer produced: the pair in lower case, and the envelope as it is delivered.

    Attributes:
        guaranteed: it is kept for whoever is away, even where they did not ask for that.
        seconds: how long.
    """

    producer: str
    event: str
    envelope: frames.Body
    guaranteed: bool
    seconds: float

    @classmethod
    def read(cls, body: frames.Body, *, name: str, event: str) -> Said:
        """Read a PRODUCE: the message as it came, absent where it was."""
        message = {"message": body["message"]} if "message" in body else {}
        marks = {"enc": body.get("enc"), "to": body.get("to"), "content_type": body.get("contentType")}
        marked = {key: mark for key, mark in marks.items() if mark}
        envelope = {"event": event, **message, "from": name, **marked}
        seconds = lifetime(body.get("ttl", body.get("lifespan")))
        return cls(fold(name), fold(event), envelope, _is_guaranteed(body), seconds)


def _is_guaranteed(body: frames.Body) -> bool:
    flags = ("guaranteed", "guaranteed_delivery", "guaranteedDelivery", "durable")
    return any(body.get(flag) is True for flag in flags) or "guaranteed" in (
        body.get("delivery"),
        body.get("delivery_mode"),
    )
