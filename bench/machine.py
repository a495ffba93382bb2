"""The product itself, started as a user starts it, in a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.children import dies_with_us

START_SECONDS = 120
STOP_SECONDS = 30
UNBITING = {
    "READYROOM_SAY_PER_SECOND": "1000000",
    "READYROOM_SAY_BURST": "1000000",
    "READYROOM_URGENT_BURST": "1000000",
    "READYROOM_BOX_PER_SECOND": "1000000",
    "READYROOM_BOX_BURST": "1000000",
}
"""The limiter works as always; only its limit is out of reach, for the bench's agents never pause."""


class NotUp(Exception):
    """`readyroom up` did not come up; the text ends with what it said."""


@dataclass(frozen=True)
class Machine:
    """A running `readyroom up`."""

    folder: Path
    url: str
    dsn: str
    pid: int

    @classmethod
    def at(cls, folder: Path) -> Machine:
        """The one that runs with this data folder.

        Raises:
            FileNotFoundError: it is not ready.
        """
        facts = json.loads((folder / "up.json").read_text(encoding="utf-8"))
        return cls(folder, facts["url"], facts["database_url"], facts["pid"])

    @property
    def superuser_dsn(self) -> str:
        """The same database as PostgreSQL's superuser, who may ask for a checkpoint."""
        return self.dsn.replace("//readyroom@", "//postgres@", 1)

    def operators_token(self) -> str:
        """The operator's token."""
        return (self.folder / "admin.token").read_text(encoding="utf-8").strip()


@contextlib.contextmanager
def running(parent: Path | None) -> Iterator[Machine]:
    """Everything but the notifier, with the product's own defaults, in a new folder that goes with it.

    Raises:
        NotUp: it did not come up.
    """
    home = Path(tempfile.mkdtemp(prefix="readyroom-bench-", dir=parent))
    try:
        if os.geteuid() == 0:
            home.chmod(0o711)  # the account that PostgreSQL runs under must pass
        with _process(home) as process:
            yield _ready(process, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _process(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("READYROOM_")}
    command = [sys.executable, "-m", "readyroom", "up", "--port", "0", "--no-notifier"]
    with (home / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--data-dir", str(home / "data")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment | UNBITING,
            preexec_fn=dies_with_us(signal.SIGTERM),
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ready(process: subprocess.Popen[bytes], home: Path) -> Machine:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            return Machine.at(home / "data")
        time.sleep(0.05)
    words = (home / "up.log").read_text(encoding="utf-8", errors="replace")
    raise NotUp(f"`readyroom up` did not come up.\n{words[-2000:]}")
