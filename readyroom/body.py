"""Where the text and the payload of a message come from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from readyroom.entrance import WrongUsageError

READ_AT_MOST = 1024 * 1024
"""Bytes; the record's own limit is far below, and it says which."""


def read_body(argument: str | None) -> str:
    """The text to send: the argument, or standard input where it is `-` or left out.

    One newline at the very end of standard input is not part of the text.

    Raises:
        WrongUsageError: there is no text, or it is not UTF-8.
    """
    if argument is not None and argument != "-":
        text = _checked(argument.encode("utf-8", "surrogateescape"))
    else:
        if sys.stdin.isatty():
            sys.stderr.write("Type the message; Ctrl-D on an empty line sends it.\n")
        text = _checked(sys.stdin.buffer.read(READ_AT_MOST + 1)).removesuffix("\n").removesuffix("\r")
    if not text.strip():
        raise WrongUsageError("There is nothing to say: the message is empty.")
    return text


def read_payload(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        WrongUsageError: it holds something else.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        text = _checked(file.read(READ_AT_MOST + 1))
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise WrongUsageError(f"{path} holds no JSON object. A payload is one.")
    return payload


def _checked(data: bytes) -> str:
    if len(data) > READ_AT_MOST:
        raise WrongUsageError(
            f"The message is longer than {READ_AT_MOST} bytes. Say where it can be read instead."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongUsageError(f"The message is not UTF-8 text (byte {error.start}).") from None
