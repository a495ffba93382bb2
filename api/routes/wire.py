"""What requests have in common."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from api.errors import BadField


class Body(BaseModel):
    """A request body: unknown fields are refused, and no value is guessed from another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Nothing(BaseModel):
    """An answer that says no more than that it is done."""


def idempotency_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The key in a request's raw headers; None: there is none.

    Raises:
        BadField: there are two.
    """
    keys = [value.decode("latin-1").strip() for name, value in headers if name == b"idempotency-key"]
    if len(keys) > 1:
        raise BadField("Idempotency-Key", "comes twice; send it once")
    return keys[0] if keys else None
