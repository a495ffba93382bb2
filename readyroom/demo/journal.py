"""What a scripted agent did and when: one JSON object a line, for whoever measures it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


class Journal:
    """A file of events; `at` is in seconds since 1970."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, event: str, *, at: float | None = None, **facts: object) -> None:
        """Write one event down, as of now unless `at` is given."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"at": time.time() if at is None else at, "event": event, **facts}) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """Everything written so far; a line that is being written is left out."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def first(self, event: str, **facts: object) -> dict[str, Any] | None:
        """The first event of that name with these facts; None while there is none."""
        wanted = {"event": event, **facts}
        return next((noted for noted in self.events() if wanted.items() <= noted.items()), None)
