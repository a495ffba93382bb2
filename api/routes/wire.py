"""What every request body has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A request body: unknown fields are refused, and no value is guessed from another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Nothing(BaseModel):
    """An answer that says no more than that it is done."""
