"""Where a workstation's programs find the record, read once from the environment and handed down."""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

TOKEN_FILE_BYTES = 4096
IN_CLEAR = [
    ipaddress.ip_network(network)
    for network in (
        *("127.0.0.0/8", "::1/128", "0.0.0.0/32", "::/128"),
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
        *("fc00::/7", "fe80::/10"),
    )
]
"""Addresses of this machine and of private networks, where http is as good as https."""

_UNEXPANDED = re.compile(r"\s*\$\{[^}]*\}?\s*")

CONNECT = (
    "Run `readyroom up` on this machine; for a record elsewhere run `readyroom connect URL` (its operator "
    "makes the code that it asks for: `readyroom admin invite NAME`)."
)


def in_words(error: Exception) -> str:
    """Why the system refused something, without the number and the path."""
    if isinstance(error, UnicodeDecodeError):
        return "it holds no text"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError):
        # EINVAL is ours: `read_secret` raises it with words of its own.
        known = error.errno in errno.errorcode and error.errno != errno.EINVAL
        return (os.strerror(error.errno or 0) if known else error.strerror or str(error)).lower()
    return str(error)


A_HANDLE = "a handle looks like work3-agent#1, without blanks, in at most 128 ASCII characters"


class SettingsError(Exception):
    """The settings do not say enough, or contradict each other; the text says what to do."""


def _given(value: object) -> object:
    """None for what agent programs send in place of an unset variable: nothing, blanks, `${NAME}`."""
    if isinstance(value, str):
        value = value.strip()
        return None if not value or _UNEXPANDED.fullmatch(value) else value
    return value


Optional = BeforeValidator(_given)


@dataclass(frozen=True, slots=True)
class Access:
    """A record and a token that it was given for.

    Attributes:
        url: base URL without a trailing slash.
        token: the box's bearer token; never shown.
        source: where the URL was found, for a human.
    """

    url: str
    token: SecretStr
    source: str


Ways = Literal["keystrokes", "native", "bell"]
"""What a user may confine wakes to."""


class ConfigFile(BaseModel):
    """What the configuration file may say; the environment comes before it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: str | None = None
    token_file: str | None = None
    wake: Ways | None = None
    wake_on: str | None = None
    bell: bool = False


class Settings(BaseSettings):
    """A workstation's settings: environment variables `READYROOM_<NAME>`. Times are seconds.

    Build it with `Settings.load()`, which turns a bad value into plain words.
    """

    model_config = SettingsConfigDict(
        env_prefix="READYROOM_", env_ignore_empty=True, extra="ignore", frozen=True
    )

    url: Annotated[str | None, Optional] = None
    token: Annotated[SecretStr | None, Optional] = None
    token_file: Annotated[Path | None, Optional] = None
    agent: Annotated[str | None, Optional] = Field(default=None, max_length=128, pattern=r"^[!-~]+$")
    admin_token_file: Annotated[Path | None, Optional] = None
    data_dir: Annotated[Path | None, Optional] = None
    bell: Annotated[bool | None, Optional] = None
    wake_on: Annotated[str | None, Optional] = None
    wake: Annotated[Ways | None, Optional] = None
    sweep_seconds: float = Field(default=60, gt=0, le=3600)

    @classmethod
    def load(cls) -> Self:
        """Read the environment.

        Raises:
            SettingsError: a variable holds what it cannot.
        """
        try:
            return cls()
        except ValidationError as error:
            bad = error.errors(include_input=False, include_url=False)[0]
            name = f"READYROOM_{'_'.join(map(str, bad['loc'])).upper()}"
            why = A_HANDLE if name == "READYROOM_AGENT" else bad["msg"]
            raise SettingsError(f"{name} will not do: {why}.") from None

    def access(self) -> Access:
        """The record to speak to, and the token that belongs to it.

        The environment comes first, then the configuration file, then a `readyroom up` of this machine. A
        token that was kept for one record is never handed to another.

        Raises:
            SettingsError: no record, or no token for it, is known.
        """
        known = list(self._known())
        url = self.url.rstrip("/") if self.url else known[0][0] if known else None
        if url is None:
            raise SettingsError(self._no_record())
        check_url(url)
        matching = [(path, source) for at, path, source in known if at == url]
        source = "READYROOM_URL" if self.url else matching[0][1]
        if self.token:
            return Access(url, _check_token(self.token.get_secret_value(), "READYROOM_TOKEN"), source)
        token_file = self.token_file or (matching[0][0] if matching else None)
        if token_file is None:
            raise SettingsError(f"There is no token for {url}. {CONNECT}")
        return Access(url, read_token(token_file.expanduser()), source)

    def operator_access(self) -> Access:
        """The record to administer, and the operator's token: READYROOM_ADMIN_TOKEN_FILE, or `up`'s own.

        Raises:
            SettingsError: no record, or no operator's token for it, is known.
        """
        url = self.url.rstrip("/") if self.url else next((at for at, _, _ in self._known()), None)
        if url is None:
            raise SettingsError(self._no_record())
        check_url(url)
        own = any(at == url for at, path, _ in self._known() if path.parent == self.up_dir)
        token_file = self.admin_token_file or (self.up_dir / "admin.token" if own else None)
        if token_file is None:
            raise SettingsError(
                f"The operator's token for {url} is not known here. Set READYROOM_ADMIN_TOKEN_FILE to the "
                "file that holds it (admin.token in the record's data folder)."
            )
        return Access(url, read_token(token_file.expanduser()), str(token_file))

    @property
    def config_file(self) -> Path:
        """Where a `ConfigFile` stands."""
        return platformdirs.user_config_path("readyroom") / "config.toml"

    def config(self) -> ConfigFile:
        """What the configuration file says; nothing where there is none.

        Raises:
            SettingsError: it cannot be read, or holds what it cannot.
        """
        try:
            found = ConfigFile.model_validate(tomllib.loads(_read(self.config_file) or ""))
            if (found.url is None) == (found.token_file is None):
                return found
            why = "`url` and `token_file` go together"
        except tomllib.TOMLDecodeError as error:
            why = str(error)
        except ValidationError as error:
            bad = error.errors(include_input=False, include_url=False)[0]
            why = f"`{'.'.join(map(str, bad['loc']))}`: {bad['msg']}"
        raise SettingsError(
            f"{self.config_file} is not readable ({why}): it holds `url` with `token_file`, `wake`, "
            "`wake_on`, `bell`. Mend it, or remove it."
        )

    @property
    def up_dir(self) -> Path:
        """The data folder of this machine's `readyroom up`."""
        return (self.data_dir or platformdirs.user_data_path("readyroom")).expanduser()

    def _no_record(self) -> str:
        if (self.up_dir / "admin.token").exists():
            return (
                f"The `readyroom up` of this machine is stopped, or not up yet (its data: {self.up_dir}). "
                "Start it again; to use a record elsewhere set READYROOM_URL and READYROOM_TOKEN_FILE."
            )
        return f"No record is known here. {CONNECT}"

    def _known(self) -> Iterator[tuple[str, Path, str]]:
        """Records that this machine was told of, best first: URL, token file, source."""
        config = self.config()
        if config.url is not None and config.token_file is not None:
            token_file = self.config_file.parent / config.token_file
            yield config.url.rstrip("/"), token_file, str(self.config_file)
        up = _read(self.up_dir / "up.json")
        if up is not None:
            try:
                url = str(json.loads(up)["url"])
            except (ValueError, KeyError, TypeError):
                raise SettingsError(
                    f"{self.up_dir / 'up.json'} is not readable. Start `readyroom up` again."
                ) from None
            yield url.rstrip("/"), self.up_dir / "box.token", str(self.up_dir / "up.json")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read ({in_words(error)}). See that it is this user's, or remove it."
        ) from None


def read_token(path: Path) -> SecretStr:
    """The token in a file.

    Raises:
        SettingsError: it is not there, no regular file of `TOKEN_FILE_BYTES` at most, or holds no token.
    """
    try:
        if stat.S_ISREG(path.stat().st_mode):
            with path.open(encoding="utf-8") as file:
                text = file.read(TOKEN_FILE_BYTES + 1)
            if len(text) <= TOKEN_FILE_BYTES:
                return _check_token(text.strip(), str(path))
    except FileNotFoundError:
        raise SettingsError(f"The token file {path} is not there. {CONNECT}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The token file {path} cannot be read ({in_words(error)}). It must be this user's own: "
            "chown and chmod 600 it, or name another."
        ) from None
    raise SettingsError(
        f"{path} is no token file: a regular file of at most {TOKEN_FILE_BYTES} bytes is expected."
    )


def _check_token(token: str, source: str) -> SecretStr:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(f"{source} holds no token: one line of printable characters is expected.")
    return SecretStr(token)


def check_url(url: str) -> None:
    """See that tokens may be sent to this URL.

    Raises:
        SettingsError: it is no URL of a record, or would carry them in clear to a public address.
    """
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
    if not whole or parts.query or parts.fragment:
        raise SettingsError(f"{url!r} is no URL of a record: it looks like https://readyroom.example:7666.")
    if parts.username or parts.password:
        raise SettingsError("The record's URL must hold no user name or password: tokens go into a file.")
    if parts.scheme == "http" and not _may_be_in_clear(parts.hostname or ""):
        raise SettingsError(
            f"{url} would carry the token in clear to a public address. Use https://, an SSH tunnel, or an "
            "address of a private network."
        )


def _may_be_in_clear(host: str) -> bool:
    """True for names, too: what they lead to is for their owner to know."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in IN_CLEAR)
