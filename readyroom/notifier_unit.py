"""`readyroom notifier install` and `uninstall`: systemd or launchd runs this user's notifier."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from deploy.units import LAUNCHD_LABEL, SYSTEMD_UNIT, launchd_agent, systemd_unit
from notifier.control.client import Control
from notifier.paths import control_socket, runtime_dir
from notifier.settings import Settings, SettingsError, read_token
from readyroom.entrance import CommandFailed
from readyroom.screen import Screen

START_SECONDS = 20.0
MANAGER_SECONDS = 30.0

_SECRET = "READYROOM_TOKEN"  # noqa: S105 - the variable's name
_NOT_ITS_OWN = {_SECRET, "READYROOM_AGENT", "READYROOM_ADMIN_TOKEN_FILE"}
_FILES = {"READYROOM_TOKEN_FILE", "READYROOM_DATA_DIR"}
_FOLDERS_OF_THE_USER = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@dataclass(frozen=True, slots=True)
class Manager:
    """What runs units here.

    Attributes:
        path: where the unit stands.
        text: what it says.
        start, stop: commands that put it in force, and out of it.
        log: how to read what the notifier logs.
        more: what the person may want to know besides.
    """

    path: Path
    text: str
    start: Sequence[Sequence[str]]
    stop: Sequence[Sequence[str]]
    log: str
    more: str


def install(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the unit; write and start nothing.")
    ] = False,
) -> None:
    """Have systemd (on macOS: launchd) run this user's notifier, now and at every login.

    The unit holds the settings that this command sees, and of the token only the path of its file.
    """
    manager = _manager(_environment())
    screen = Screen(as_json=False)
    if dry_run:
        screen.line(str(manager.path), "bold")
        sys.stdout.write(manager.text)
        return
    _make_room(manager)
    manager.path.parent.mkdir(parents=True, exist_ok=True)
    manager.path.write_text(manager.text, encoding="utf-8")
    try:
        for command in manager.start:
            _call(command)
    except CommandFailed:
        manager.path.unlink()
        raise
    screen.line(f"Written, and in force: {manager.path}")
    screen.line(f"The notifier runs (process {_await_start(manager)}). {manager.more}")
    screen.line(f"Its log: {manager.log}")


def uninstall() -> None:
    """Stop this user's notifier and remove its unit."""
    manager = _manager({})
    screen = Screen(as_json=False)
    if not manager.path.exists():
        screen.line(f"No notifier is installed: {manager.path} is not there.")
        return
    for command in manager.stop:
        _call(command)
    manager.path.unlink()
    screen.line(f"Stopped, and removed: {manager.path}")


def _manager(environ: dict[str, str]) -> Manager:
    # -P: nothing in the folder where it is started can pass for our modules.
    command = [sys.executable, "-P", "-m", "readyroom", "notifier"]
    if sys.platform == "darwin":
        return _launchd(command, environ)
    home, base = _home(), Path(os.environ.get("XDG_CONFIG_HOME", "").strip())
    systemctl = ("systemctl", "--user")
    return Manager(
        path=(base if base.is_absolute() else home / ".config") / "systemd" / "user" / SYSTEMD_UNIT,
        text=systemd_unit(command, environ),
        start=(
            (*systemctl, "daemon-reload"),
            (*systemctl, "enable", "--now", SYSTEMD_UNIT),
        ),
        stop=((*systemctl, "disable", "--now", SYSTEMD_UNIT),),
        log=f"journalctl --user -u {SYSTEMD_UNIT}",
        more="`loginctl enable-linger` keeps it running while you are logged out.",
    )


def _launchd(command: list[str], environ: dict[str, str]) -> Manager:
    home = _home()
    path = home / "Library" / "LaunchAgents" / f"{LAUNCHD_LABEL}.plist"
    log = home / "Library" / "Logs" / "readyroom-notifier.log"
    domain = f"gui/{os.getuid()}"
    return Manager(
        path=path,
        text=launchd_agent(command, environ, log=str(log)),
        start=(("launchctl", "bootstrap", domain, str(path)),),
        stop=(("launchctl", "bootout", f"{domain}/{LAUNCHD_LABEL}"),),
        log=str(log),
        more="It starts again at every login.",
    )


def _home() -> Path:
    """This user's home folder.

    Raises:
        SettingsError: HOME names none.
    """
    home = Path(os.environ.get("HOME", "").strip() or Path.home())
    if not home.is_absolute() or not home.is_dir() or not str(home).isprintable():
        raise SettingsError(f"HOME is {str(home)!r}, which is no folder. Name this user's home folder.")
    return home


def _environment() -> dict[str, str]:
    """What the notifier is to know: a manager of units has not the environment of a shell.

    Raises:
        SettingsError: the settings do not do, no unit can hold them, or the token stands in the environment.
    """
    settings = Settings.load()
    settings.access()
    if settings.token is not None:
        raise SettingsError(
            f"The token stands in {_SECRET}, and a unit must not hold it. Put it into a file of your own "
            f"(mode 600), name that in {_SECRET}_FILE, and unset {_SECRET}."
        )
    if settings.token_file is not None:
        read_token(settings.token_file.expanduser())
    ours = [f"READYROOM_{name.upper()}" for name in Settings.model_fields]
    names = [name for name in ours if name not in _NOT_ITS_OWN] + [*_FOLDERS_OF_THE_USER, "PATH"]
    seen = {name: os.environ[name].strip() for name in names if os.environ.get(name, "").strip()}
    known = {name: value for name, value in seen.items() if not value.startswith("${")}
    paths = {name: os.path.abspath(os.path.expanduser(known[name])) for name in _FILES & known.keys()}
    environ = {**known, **paths, "READYROOM_RUNTIME_DIR": runtime_dir(os.environ)}
    for name, value in environ.items():
        if not value.isprintable():
            raise SettingsError(f"{name} is {value!r}, and no unit can hold that. Set it to printable text.")
    return environ


def _make_room(manager: Manager) -> None:
    """End the notifier that an earlier installation runs.

    Raises:
        CommandFailed: one runs that is no unit.
    """
    if manager.path.exists():
        for command in manager.stop:
            with contextlib.suppress(CommandFailed):
                _call(command)
    if (pid := _running()) is not None:
        raise CommandFailed(
            f"A notifier runs already (process {pid}), and not as a unit. Stop it first; `readyroom up` "
            "leaves its own out with --no-notifier."
        )


def _call(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=MANAGER_SECONDS, check=False, errors="replace"
        )
    except FileNotFoundError:
        raise CommandFailed(
            f"There is no {command[0]} here. Have something else start `readyroom notifier` at login."
        ) from None
    except subprocess.TimeoutExpired:
        raise CommandFailed(f"`{' '.join(command)}` did not come back in {MANAGER_SECONDS:.0f} s.") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise CommandFailed(
            f"`{' '.join(command)}` failed ({said[0].rstrip('.')}). Try again in a login session of "
            "this user, or start `readyroom notifier` by hand."
        )


def _await_start(manager: Manager) -> int:
    end = time.monotonic() + START_SECONDS
    while (pid := _running()) is None:
        if time.monotonic() > end:
            raise CommandFailed(f"The unit is in force, but the notifier does not answer. See {manager.log}")
        time.sleep(0.1)
    return pid


def _running() -> int | None:
    """The process of the notifier that answers, if one does."""
    try:
        with Control(control_socket(runtime_dir(os.environ))) as control:
            return int(control.ask({"op": "status"})["pid"])
    except (OSError, ValueError, KeyError):
        return None
