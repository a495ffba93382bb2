"""This machine's own box: its name, and its token in the data folder."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

import aiohttp

from deploy.folder import DataFolder

RESERVED = ("everyone", "system")


class NoBox(Exception):
    """The record gives this machine no token; the text says what the operator can do."""


@dataclass(frozen=True)
class Box:
    """A box of this record, whose token lies in the data folder."""

    name: str
    made: bool
    """Whether its token was made just now."""


def fitting_name(hostname: str) -> str:
    """A host's name as a box may be named: its first label, lower case, at most 64 characters."""
    name = re.sub(r"[^a-z0-9._-]+", "-", hostname.partition(".")[0].lower())[:64].strip("._-")
    return "box" if not name or name in RESERVED else name


async def sign_in(url: str, folder: DataFolder) -> Box:
    """Make sure that `box.token` holds a token that this record knows.

    Raises:
        NoBox: the record refuses.
    """
    async with aiohttp.ClientSession(url) as record:
        token = folder.read(folder.box_token_file)
        if token and (name := await _owner(record, token)):
            return Box(name=name, made=False)
        name = fitting_name(socket.gethostname())
        folder.keep(folder.box_token_file, await _new_token(record, name, folder.admin_token()))
        return Box(name=name, made=True)


async def _owner(record: aiohttp.ClientSession, token: str) -> str | None:
    async with record.get("/v1/whoami", headers=_bearer(token)) as answer:
        if answer.status == 401:
            return None
        if answer.status != 200:
            raise NoBox(f"The record does not say whose box.token is: {await _detail(answer)}")
        return str((await answer.json())["box"])


async def _new_token(record: aiohttp.ClientSession, name: str, operator: str) -> str:
    async with record.post("/v1/admin/boxes", json={"name": name}, headers=_bearer(operator)) as answer:
        if answer.status == 201:
            return str((await answer.json())["token"])
        if answer.status != 409:
            raise NoBox(f"The record made no box {name}: {await _detail(answer)}")
    async with record.post(f"/v1/admin/boxes/{name}/tokens", headers=_bearer(operator)) as answer:
        if answer.status == 201:
            return str((await answer.json())["token"])
        raise NoBox(f"The record gave no token for box {name}: {await _detail(answer)}")


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _detail(answer: aiohttp.ClientResponse) -> str:
    try:
        return str((await answer.json(content_type=None))["detail"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status}"
