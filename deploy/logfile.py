"""Log files in the data folder: private, appended to, turned over at a start once they are large."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

MAX_BYTES = 10 * 1024 * 1024


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; what was longer than `MAX_BYTES` becomes `<name>.1`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
    except FileNotFoundError:
        pass
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
