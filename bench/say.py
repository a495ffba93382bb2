"""`say` over HTTP against pgbench, which does what a say must do in the same tables of the same server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import pgbench, wrk
from bench.cast import SESSIONS, Cast, Place, assemble
from bench.database import value
from bench.load import Case, Load, LoadFailed
from bench.machine import Machine
from bench.rounds import Measured

NAME = "say"
TITLE = "say over HTTP"
HEADLINE = "32 clients, 64 rooms"
LEAST_RATIO = 0.5
"""What the headline's case must reach of its first baseline."""

WORDS = ("agents say what they did and what is left " * 5)[:200]
CLIENTS = (1, 32)


@dataclass(frozen=True)
class Say:
    """POST /v1/rooms/{room}/messages by a compiled client; everything that the product does is on."""

    machine: Machine
    requests: Path
    clients: int
    name: str = "say over HTTP"

    def run(self, seconds: int) -> Load:
        """See `Contender`; every answer must be a row in the database."""
        newest = value(self.machine.dsn, "SELECT coalesce(max(id), 0) FROM conv_messages")
        load = wrk.run(self.machine.url, self.requests, clients=self.clients, seconds=seconds)
        stored = value(self.machine.dsn, "SELECT count(*) FROM conv_messages WHERE id > $1", newest)
        if not load.operations <= stored <= load.operations + self.clients:
            raise LoadFailed(f"{load.operations} answers, but {stored} messages are stored.")
        return load


@dataclass(frozen=True)
class Baseline:
    """One of the scripts of `sql/`, in the same rooms by the same senders."""

    name: str
    script: str
    machine: Machine
    cast: Cast
    place: Place
    clients: int

    def run(self, seconds: int) -> Load:
        """See `Contender`."""
        variables: dict[str, int | str] = {
            "realm_id": self.cast.realm_id,
            "box_id": self.cast.box_id,
            "first_sender": self.cast.first_sender,
            "sessions": SESSIONS,
            "first_room": self.place.first_room,
            "rooms": len(self.place.rooms),
            "members": self.place.members,
            "body": WORDS,
            "size": len(WORDS),
        }
        return pgbench.run(self.machine.dsn, self.script, variables, clients=self.clients, seconds=seconds)


def cases(machine: Machine) -> list[Case]:
    """One and many clients, in one room and in many."""
    cast = assemble(machine)
    return list(_cases(machine, cast))


def _cases(machine: Machine, cast: Cast) -> Iterator[Case]:
    for place in (cast.many, cast.hot):
        requests = machine.folder.parent / f"requests-{len(place.rooms)}"
        speakers = [(session.token, session.handle, room) for session, room in cast.speakers(place)]
        wrk.write_requests(requests, speakers, body=json.dumps({"body": WORDS}))
        for clients in CLIENTS:
            yield Case(
                _title(clients, len(place.rooms)),
                Say(machine, requests, clients),
                (
                    Baseline("pgbench, transaction", "transaction.sql", machine, cast, place, clients),
                    Baseline("pgbench, one statement", "statement.sql", machine, cast, place, clients),
                ),
            )


def _title(clients: int, rooms: int) -> str:
    return f"{clients} client{'s' * (clients > 1)}, {rooms} room{'s' * (rooms > 1)}"


def verdict(measured: list[Measured]) -> str:
    """The headline, and whether it is what we promised ourselves."""
    one = next(one for one in measured if one.case.name == HEADLINE)
    plain, single = one.case.baselines
    plainly, singly = one.ratio(one.case.product, plain), one.ratio(one.case.product, single)
    reached = "reached" if plainly.median >= LEAST_RATIO else "MISSED"
    return (
        f"{HEADLINE}: {plainly.median:.2f} x {plain.name} (lock, insert, commit: four round trips); "
        f"target {LEAST_RATIO}: {reached}. {singly.median:.2f} x {single.name}."
    )
