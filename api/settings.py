"""Every setting of the service, read once from the environment and handed down."""

from __future__ import annotations

import errno
import re
import stat
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

SECRET_BYTES = 4096


def read_secret(path: Path) -> str:
    """The secret in a file, without the newline at its end.

    Raises:
        OSError: it cannot be read, or is no regular file of `SECRET_BYTES` at most.
        UnicodeDecodeError: it is no text.
    """
    if stat.S_ISREG(path.stat().st_mode):
        with path.open(encoding="utf-8") as file:
            text = file.read(SECRET_BYTES + 1)
        if len(text) <= SECRET_BYTES:
            return text.strip()
    raise OSError(errno.EINVAL, f"a secret lies in a regular file of at most {SECRET_BYTES} bytes", str(path))


class Settings(BaseSettings):
    """The service's settings: environment variables `READYROOM_<NAME>`.

    A secret may also be given as the path of a file that holds it, in `READYROOM_<NAME>_FILE`.
    Sizes are bytes, times are seconds.
    """

    model_config = SettingsConfigDict(env_prefix="READYROOM_", extra="ignore", frozen=True)

    database_url: SecretStr | None = None
    database_url_file: Path | None = None
    database_connections: int = Field(default=11, ge=7, le=200)
    admin_token_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = Field(default=7666, ge=0, le=65535)
    public_url: str | None = None
    mcp_hosts: str | None = None
    nerve_url: str | None = None
    nerve_public_url: str | None = None
    nerve_token_file: Path | None = None
    redis_url: SecretStr | None = None
    redis_url_file: Path | None = None

    body_max_bytes: int = 64 * 1024
    payload_max_bytes: int = 256 * 1024
    say_per_second: float = Field(default=50, gt=0)
    say_burst: int = Field(default=500, ge=1)
    urgent_per_second: float = Field(default=1, gt=0)
    urgent_burst: int = Field(default=60, ge=1)
    box_per_second: float = Field(default=500, gt=0)
    box_burst: int = Field(default=5000, ge=1)
    waiting_calls: int = Field(default=100, ge=1)
    rooms_per_realm: int = Field(default=10_000, ge=1)
    members_per_room: int = Field(default=10_000, ge=1)
    page_max: int = Field(default=1000, ge=1, le=1000)
    handles_per_box: int = Field(default=10_000, ge=1)
    presence_stale_seconds: int = 180
    retire_after_seconds: int = 7 * 24 * 3600
    keep_days: int | None = Field(default=None, ge=1, le=36_500)

    webhook_allow: str | None = None
    webhooks_per_agent: int = Field(default=10, ge=0)
    webhook_retry_seconds: float = Field(default=5, gt=0)
    webhook_give_up_seconds: int = Field(default=3 * 24 * 3600, gt=0)

    @field_validator("redis_url")
    @classmethod
    def _is_a_redis(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not re.match("(rediss?|unix)://|$", url.get_secret_value()):
            raise ValueError("a URL of Redis or Valkey begins with redis://, rediss:// or unix://")
        return url

    def names(self) -> frozenset[str]:
        """The host names by which this record is called, as far as it knows; `*`: by any."""
        given = {each.strip() for each in (self.mcp_hosts or "").split(",")}
        public = urlsplit(self.public_url or "").hostname or ""
        return frozenset({*given, public, self.host}) - {""}

    def database_dsn(self) -> str:
        """The libpq URL of the database.

        Raises:
            ValueError: neither the setting nor its file is given.
        """
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        if self.database_url_file is not None:
            return read_secret(self.database_url_file)
        raise ValueError("READYROOM_DATABASE_URL (or READYROOM_DATABASE_URL_FILE) is not set")

    def redis(self) -> str | None:
        """The URL of the Redis or Valkey between the replicas of the embedded nerve; None: there is none.

        Raises:
            OSError, UnicodeDecodeError: its file cannot be read.
        """
        if self.redis_url is not None:
            return self.redis_url.get_secret_value() or None
        return read_secret(self.redis_url_file) if self.redis_url_file is not None else None
