"""Where a secret is written that is shown once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from readyroom.entrance import WrongUsageError


@contextmanager
def new_file(path: Path) -> Iterator[TextIO]:
    """A new file that only this user reads; removed again if the block fails."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise WrongUsageError(
            f"{path} cannot be made ({os.strerror(error.errno or 0).lower()}). "
            "Name a new file in a folder of yours."
        ) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise
