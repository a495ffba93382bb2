"""What a caller gave, by its type, and in words what of it will not do."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Generic, TypeVar

import msgspec

from api.errors import BadField, BadRequest
from api.services import fields
from api.services.drafts import exact_number

Given = TypeVar("Given")

NO_OBJECT = "The body must be one JSON object."

_AT = re.compile(r" - at `\$\.?([^`]*)`")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]*)`")


class Decoder(Generic[Given]):
    """Reads JSON as one type; a number of a payload keeps its digits."""

    def __init__(self, type_: type[Given]) -> None:
        self._decoder = msgspec.json.Decoder(type_, float_hook=exact_number)

    def decode(self, raw: bytes) -> Given:
        """The value.

        Raises:
            BadField: a field is unknown, missing or of another type; it is named.
            BadRequest: this is no JSON object.
        """
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise bad_field(str(error)) from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise _bad_request(raw, error) from None


def bad_field(message: str) -> BadField | BadRequest:
    """What msgspec found, with the field's name."""
    if unknown := _UNKNOWN.search(message):
        return BadField(unknown[1], "there is no such field; leave it out")
    for pattern in (_MISSING, _AT):
        if found := pattern.search(message):
            return BadField(found[1], _AT.sub("", message))
    return BadRequest(NO_OBJECT)


def _bad_request(raw: bytes, error: Exception) -> BadField | BadRequest:
    """Name the field whose only fault is half of a surrogate pair; Python's own decoder lets that pass."""
    with contextlib.suppress(ValueError, RecursionError, AttributeError):
        for field, value in json.loads(raw).items():
            fields.unicode_text(field, json.dumps(value, ensure_ascii=False))
    return BadRequest(f"The body must be one JSON object: {error}")
