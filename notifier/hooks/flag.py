"""The session's flag: a program watches it, and when it changes asks the notifier whether it is to wake."""

from __future__ import annotations

import os

from notifier.control.client import Control
from notifier.paths import control_socket, flag_file, private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Flag:
    """The flag of one process.

    Attributes:
        path: where it is.
    """

    def __init__(self, folder: str, process: dict[str, Any]) -> None:
        self._folder = folder
        self._process = process
        self.path = flag_file(folder, process["pid"], process["started"])

    def stands(self) -> bool:
        """Whether it was put up, so that the program watches it."""
        return os.path.exists(self.path)

    def put_up(self) -> None:
        """Make it where there is none; only this user can reach it.

        Raises:
            OSError: it cannot be made, or others could reach it.
        """
        private(self._folder)
        private(os.path.dirname(self.path))
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))

    def wakes(self, changed: str) -> bool:
        """Whether the change of the file `changed` is to wake the session.

        Raises:
            OSError: the notifier does not answer, or not in time.
            ValueError: its answer is none.
        """
        if os.path.basename(changed) != os.path.basename(self.path):
            return False
        with Control(control_socket(self._folder)) as control:
            return control.ask({"op": "flagged", "process": self._process}).get("wake") is True
