"""`readyroom connect`: makes this machine a box of a record elsewhere, by a one-use code or a token."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from pydantic import SecretStr

from notifier.record import Record, RecordUnreachable, Refused
from notifier.settings import TOKEN_FILE_BYTES, Settings, SettingsError, check_url, in_words, read_token
from readyroom import notifier_unit
from readyroom.entrance import CommandFailed, WrongUsageError, enter
from readyroom.screen import Screen

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

HOW_TO = {
    "claude": "readyroom setup claude-code",
    "codex": "readyroom setup codex",
    "gemini": "readyroom setup gemini",
}
"""Agent program -> what makes it one of ours."""

_CODE = re.compile(r"[2-9a-z]{16}")
_SECRET_BYTES = 512


def main(argv: list[str]) -> int:
    """Connect; 1 when that fails."""
    return enter(app, argv[1:], name="readyroom connect")


@app.command()
def connect(
    url: Annotated[str, typer.Argument(help="The record, such as https://readyroom.example.")],
    secret_file: Annotated[
        Path | None, typer.Option(help="Where the code or token stands, in place of asking for it.")
    ] = None,
    notifier: Annotated[
        bool,
        typer.Option("--notifier/--no-notifier", help="Have systemd (macOS: launchd) run the notifier."),
    ] = True,
) -> None:
    """Join a record that runs elsewhere. Asks for a one-use code (`readyroom admin invite`) or a token.

    Without a terminal the code or token is read from standard input. It is tried before anything is written;
    the token is kept in a file that only this user can read. Done twice, it changes nothing.
    """
    url = url.rstrip("/")
    check_url(url)
    screen, keeping = Screen(as_json=False), Keeping(Settings.load(), url)
    known = _known(keeping)
    if known is None:
        _look_for(url)
        secret = _secret(secret_file)
        with keeping.new_token() as file:
            token, known = asyncio.run(_signed_in(url, secret))
            file.write(token)
        keeping.note()
    who = f"{known['agent']} in the realm {known['realm']}"
    screen.line(f"Connected to {url} as {who}. Kept in {keeping.config_file}", "bold green")
    keeping.warn(screen)
    if notifier and known["kind"] == "box":
        _run_notifier(screen)
    _show_programs(screen)


class Keeping:
    """What this machine keeps of its record: `url` and `token_file` in config.toml, and the token's file.

    Raises:
        CommandFailed: the machine is connected to another record.
        SettingsError: config.toml is not readable.
    """

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings, self.url = settings, url
        self.config_file = settings.config_file
        config = settings.config()
        if config.url is not None and config.url.rstrip("/") != url:
            raise CommandFailed(
                f"{self.config_file} connects this machine to {config.url}. To change over, remove `url` and "
                "`token_file` there, and connect again."
            )
        self.is_noted = config.url is not None
        self.token_file = self.config_file.parent / Path(config.token_file or "token").expanduser()

    @contextmanager
    def new_token(self) -> Iterator[TextIO]:
        """A file to write the token into, which then stands in the old one's place.

        It takes up its room at once: a code is not spent where its token could not be kept.

        Raises:
            CommandFailed: it cannot be made; nothing has changed.
        """
        new = self.token_file.with_name(f"{self.token_file.name}.new")
        try:
            self.token_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise self._unkept(new, error) from None
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write("\n" * _SECRET_BYTES)
                file.flush()
                os.fsync(descriptor)
                file.seek(0)
                yield file
                file.truncate()
                file.flush()
                os.fsync(descriptor)
            os.replace(new, self.token_file)
        except OSError as error:
            raise self._unkept(new, error) from None
        finally:
            new.unlink(missing_ok=True)

    def note(self) -> None:
        """Name record and token file in config.toml, before whatever stands there.

        Raises:
            CommandFailed: it cannot be written.
        """
        if self.is_noted:
            return
        file = self.config_file.resolve()
        new = file.with_name(f"{file.name}.new")
        # JSON's strings are TOML's, too.
        ours = f"url = {json.dumps(self.url)}\ntoken_file = {json.dumps(self.token_file.name)}\n"
        try:
            kept = file.read_text(encoding="utf-8") if file.exists() else ""
            new.write_text(ours + kept, encoding="utf-8")
            new.chmod(0o600)
            os.replace(new, file)
        except OSError as error:
            raise self._unkept(self.config_file, error) from None

    def warn(self, screen: Screen) -> None:
        """Say which variables come before what is kept."""
        variables = ("url", "token", "token_file")
        names = [
            f"READYROOM_{name.upper()}" for name in variables if getattr(self._settings, name) is not None
        ]
        if names:
            screen.line(f"{' and '.join(names)} in the environment come before it. Unset them.", "yellow")

    @staticmethod
    def _unkept(path: Path, error: OSError) -> CommandFailed:
        return CommandFailed(
            f"{path} cannot be written ({in_words(error)}). See that the folder is this user's and has room, "
            "and connect again."
        )


def _known(keeping: Keeping) -> dict[str, Any] | None:
    """Who this machine is at the record already; None where its token is not there, or worth nothing."""
    if not keeping.is_noted:
        return None
    try:
        return asyncio.run(_who(keeping.url, read_token(keeping.token_file)))
    except SettingsError:
        return None
    except Refused as refused:
        if refused.status != 401:
            raise
        return None


def _look_for(url: str) -> None:
    """See that a record answers, before anybody types a code.

    Raises:
        RecordUnreachable: none does.
    """

    async def look() -> None:
        async with Record(url, "none") as record:
            if (await record.call("GET", "/healthz")).get("status") != "ok":
                raise RecordUnreachable(f"What answers at {url} is no record. See the URL.")

    asyncio.run(look())


async def _signed_in(url: str, secret: str) -> tuple[str, dict[str, Any]]:
    """The token, drawn with a code or given, and whom the record takes it for."""
    letters = re.sub(r"[-\s]", "", secret.lower())
    token = await _redeemed(url, letters) if _CODE.fullmatch(letters) else secret
    try:
        return token, await _who(url, SecretStr(token))
    except Refused as refused:
        if refused.status == 401:
            raise CommandFailed(
                f"{url} knows neither such a token nor such a code. A code has four times four letters; ask "
                "the operator for one (`readyroom admin invite NAME`)."
            ) from None
        raise


async def _redeemed(url: str, code: str) -> str:
    async with Record(url, "none") as record:
        try:
            answer = await record.call("POST", "/v1/redeem", {"code": code}, repeatable=False)
        except RecordUnreachable as error:
            raise CommandFailed(
                f"{error.detail} Whether the code was spent is not known: try it again, then ask for another."
            ) from None
    return str(answer["token"])


async def _who(url: str, token: SecretStr) -> dict[str, Any]:
    async with Record(url, token) as record:
        return await record.whoami()


def _secret(file: Path | None) -> str:
    """The code or token: from a file, asked for without an echo, or from standard input.

    Raises:
        WrongUsageError: there is none.
    """
    if file is not None:
        try:
            with file.open(encoding="utf-8") as given:
                text = given.read(TOKEN_FILE_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUsageError(f"{file} cannot be read ({in_words(error)}). Name another file.") from None
    elif sys.stdin.isatty():
        text = getpass.getpass("One-use code or token (it is not shown): ")
    else:
        text = sys.stdin.readline(TOKEN_FILE_BYTES)
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable() or len(text) >= _SECRET_BYTES:
        raise WrongUsageError("A one-use code or a token is wanted: one line of printable characters.")
    return text


def _run_notifier(screen: Screen) -> None:
    try:
        notifier_unit.install()
    except (CommandFailed, SettingsError) as error:
        screen.line(f"The notifier is not installed. {error}", "yellow")


def _show_programs(screen: Screen) -> None:
    found = [(name, how) for name, how in HOW_TO.items() if shutil.which(name)]
    screen.table(("FOUND HERE", "SET IT UP"), found, empty="No agent program that we know is on PATH.")
    screen.line("`readyroom doctor` says what works here, and what mends the rest.")
