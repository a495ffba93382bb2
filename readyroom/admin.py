"""`readyroom admin`: realms, boxes, people, nerve tokens and so on, over REST with the operator's token."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from notifier.record import Record
from notifier.record.transport import segment
from notifier.settings import Settings
from readyroom.entrance import WrongUsageError, enter
from readyroom.screen import Screen, inert, moment
from readyroom.secret_file import new_file

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Json = dict[str, Any]
Name = Annotated[str, typer.Argument(help="Its name.", show_default=False)]
Realm = Annotated[str | None, typer.Option(help="Its realm; main when left out.")]
TokenFile = Annotated[
    Path | None, typer.Option(help="Write the token into this new file (mode 600) and do not show it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, one document.")]


def main(argv: list[str]) -> int:
    """Run one operator's command."""
    return enter(app, argv[1:], name="readyroom admin")


realm_app = typer.Typer(no_args_is_help=True, help="Realms: nothing is seen or named across them.")
app.add_typer(realm_app, name="realm")


@realm_app.command("add")
def add_realm(
    name: Name,
    ttl: Annotated[int | None, typer.Option(min=1, help="Seconds until it and all in it is swept.")] = None,
    keep_days: Annotated[int | None, typer.Option(min=1, help="Days that its messages are kept.")] = None,
    anonymous_listeners: Annotated[
        bool,
        typer.Option(
            "--anonymous-listeners", help="Let anybody hear on the nerve what other programs produce in it."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a realm."""
    wanted = {"name": name, "ttl_seconds": ttl, "keep_days": keep_days}
    made = _ask("POST", "/v1/admin/realms", {**wanted, "anonymous_listeners": anonymous_listeners})
    screen = Screen(as_json=as_json)
    screen.json(made) if as_json else screen.line(f"Realm {name} is there.")


@realm_app.command("keep")
def keep_messages(
    name: Name,
    days: Annotated[str, typer.Argument(help="A number of days; default: as READYROOM_KEEP_DAYS says.")],
    as_json: AsJson = False,
) -> None:
    """Say for how many days a realm's messages are kept."""
    if days != "default" and not days.isdecimal():
        raise WrongUsageError(f"DAYS is a number, or default, not {days!r}.")
    kept = None if days == "default" else int(days)
    answer = _ask("PUT", f"/v1/admin/realms/{segment(name)}", {"keep_days": kept})
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json(answer)
    screen.line(f"Realm {name} keeps messages " + (f"{kept} days." if kept else "as the service does."))


class Listeners(StrEnum):
    """Who may listen in a realm."""

    ANONYMOUS = "anonymous"
    KNOWN = "known"


@realm_app.command("listeners")
def let_in(
    name: Name,
    who: Annotated[Listeners, typer.Argument(help="Anybody, or only who has a token.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Say who may hear on the nerve what other programs produce in a realm. Nudges are never for anybody."""
    wanted = {"anonymous": who is Listeners.ANONYMOUS}
    answer = _ask("PUT", f"/v1/admin/realms/{segment(name)}/listeners", wanted)
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json(answer)
    screen.line(
        f"In realm {name}, " + ("anybody" if wanted["anonymous"] else "who has a token") + " may listen."
    )


@realm_app.command("list")
def list_realms(as_json: AsJson = False) -> None:
    """Show every realm."""
    _list("/v1/admin/realms", "realms", {}, as_json)


@realm_app.command("revoke")
def revoke_realm(name: Name, as_json: AsJson = False) -> None:
    """End a realm at once, with all that was ever said in it. The realm main stays."""
    _ask("DELETE", f"/v1/admin/realms/{segment(name)}")
    screen = Screen(as_json=as_json)
    screen.json({}) if as_json else screen.line(f"Realm {name} is gone with everything in it.")


def holders(path: str, one: str, many: str) -> typer.Typer:
    """The commands for boxes and people."""
    group = tokens(path, one, many, key=many)

    @group.command("add", help=f"Make a {one} and its first token, which is shown once.")
    def add(name: Name, realm: Realm = None, token_file: TokenFile = None, as_json: AsJson = False) -> None:
        _token(path, {"name": name, "realm": realm}, None, token_file, as_json)

    return group


def tokens(path: str, one: str, many: str, *, key: str) -> typer.Typer:
    """The commands that whoever holds tokens has in common."""
    group = typer.Typer(no_args_is_help=True, help=f"{many.capitalize()} and their tokens.")

    @group.command("list", help=f"Show the {many} and the ids of their tokens.")
    def list_(realm: Realm = None, as_json: AsJson = False) -> None:
        _list(path, key, {"realm": realm}, as_json)

    @group.command(
        "rotate", help=f"Give a {one} a second token. Revoke the first one when the new one is in use."
    )
    def rotate(
        name: Name, realm: Realm = None, token_file: TokenFile = None, as_json: AsJson = False
    ) -> None:
        _token(f"{path}/{segment(name)}/tokens", None, realm, token_file, as_json)

    @group.command("revoke", help="Revoke one token by its id; whoever uses it is cut off at once.")
    def revoke(
        token_id: Annotated[str, typer.Argument(help="The id that `list` shows.", show_default=False)],
        as_json: AsJson = False,
    ) -> None:
        _ask("DELETE", f"/v1/admin/tokens/{segment(token_id)}")
        screen = Screen(as_json=as_json)
        screen.json({}) if as_json else screen.line(f"Token {token_id} is revoked.")

    @group.command("remove", help=f"End a {one} with all its tokens at once; what was said stays.")
    def remove(name: Name, realm: Realm = None, as_json: AsJson = False) -> None:
        _ask("DELETE", f"{path}/{segment(name)}", query={"realm": realm})
        screen = Screen(as_json=as_json)
        screen.json({}) if as_json else screen.line(f"The {one} {name} is gone.")

    return group


app.add_typer(holders("/v1/admin/boxes", "box", "boxes"), name="box")
app.add_typer(holders("/v1/admin/people", "person", "people"), name="person")


class NerveRole(StrEnum):
    """What a nerve token is good for."""

    CONSUMER = "consumer"
    PRODUCER = "producer"
    BOTH = "both"


nerve_token_app = tokens("/v1/admin/nerve-tokens", "nerve client", "nerve clients", key="nerve_tokens")
app.add_typer(nerve_token_app, name="nerve-token")


@nerve_token_app.command(
    "add", help="Let a program that is no agent onto the nerve; its token is shown once."
)
def add_nerve_token(
    name: Name,
    role: Annotated[NerveRole, typer.Option(help="Whether it listens, produces, or does both.")] = (
        NerveRole.CONSUMER
    ),
    realm: Realm = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a nerve token."""
    wanted = {"name": name, "realm": realm, "role": role.value}
    _token("/v1/admin/nerve-tokens", wanted, None, token_file, as_json)


@app.command("invite", help="Make a one-use code that lets a box in, and show it once.")
def invite(
    box: Annotated[str, typer.Argument(help="The box's name; it need not exist.", show_default=False)],
    realm: Realm = None,
    ttl: Annotated[int | None, typer.Option(min=1, help="Seconds until it ends; 600 when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make an invite."""
    made = _ask("POST", "/v1/admin/invites", {"box": box, "realm": realm, "ttl_seconds": ttl})
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json(made)
    sys.stderr.write(
        f"Invite {made['invite_id']} for {inert(box)}, until {moment(made['expires_at'])}, shown once. "
        "On that machine `readyroom connect URL` asks for it:\n"
    )
    screen.line(made["code"])


@app.command("invites", help="Show the invites that can be redeemed.")
def invites(realm: Realm = None, as_json: AsJson = False) -> None:
    """Show open invites."""
    _list("/v1/admin/invites", "invites", {"realm": realm}, as_json)


@app.command("uninvite", help="Make an invite worthless, by its id.")
def uninvite(
    invite_id: Annotated[str, typer.Argument(help="The id that `invites` shows.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Revoke an invite."""
    _ask("DELETE", f"/v1/admin/invites/{segment(invite_id)}")
    screen = Screen(as_json=as_json)
    screen.json({}) if as_json else screen.line(f"Invite {invite_id} is worthless.")


@app.command("dead-letters", help="Show messages of other programs that nobody acknowledged.")
def dead_letters(realm: Realm = None, as_json: AsJson = False) -> None:
    """Show dead letters, without what they say."""
    _list("/v1/admin/dead-letters", "dead_letters", {"realm": realm}, as_json)


@app.command("audit", help="Show the newest acts of the operator.")
def audit(
    realm: Annotated[str | None, typer.Option(help="Only this realm's.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=1000, help="At most so many (100).")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the audit log."""
    _list("/v1/admin/audit", "acts", {"realm": realm, "limit": limit}, as_json)


def _token(path: str, body: Json | None, realm: str | None, token_file: Path | None, as_json: bool) -> None:
    """Have a token made, and show it once or put it where only this user reads it."""
    with new_file(token_file) if token_file else nullcontext() as file:
        made = _ask("POST", path, body, query={"realm": realm})
        if file is not None:
            file.write(f"{made['token']}\n")
            made = {**made, "token": None, "token_file": str(token_file)}
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json(made)
    if token_file is not None:
        return screen.line(f"Token {made['token_id']} is in {token_file}, which only you can read.")
    sys.stderr.write(f"Token {made['token_id']}, shown once; the record keeps only its hash:\n")
    screen.line(made["token"])


def _list(path: str, name: str, query: Mapping[str, object], as_json: bool) -> None:
    rows = _ask("GET", path, query=query)[name]
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({name: rows})
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    screen.table(
        columns,
        [[_cell(row.get(key)) for key in columns] for row in rows],
        empty=f"There are no {name.replace('_', ' ')}.",
    )


def _cell(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(
            str(one.get("token_id", one)) if isinstance(one, dict) else str(one) for one in value
        )
    return value


def _ask(
    method: str, path: str, body: Json | None = None, *, query: Mapping[str, object] | None = None
) -> Json:
    """One call as the operator. Nothing is repeated: a token whose answer was lost would stay unknown."""

    async def asked() -> Json:
        access = Settings.load().operator_access()
        async with Record(access.url, access.token) as record:
            return await record.call(method, path, body, query=query, repeatable=False)

    return asyncio.run(asked())
