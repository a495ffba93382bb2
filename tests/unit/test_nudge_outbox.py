"""Coalescing: bursts become few, and the last of a burst is never lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker_bridge.nudge import Nudge
from broker_bridge.outbox import Outbox, Parcel

ROOMS = st.sampled_from(["api", "web", "@everyone"])
REALMS = st.sampled_from(["main", "other"])
NAMES = st.frozensets(st.sampled_from(["work3", "devmac", "eric"]), max_size=3)


class Bursts(RuleBasedStateMachine):
    """Whatever the order of nudges, deliveries and failed deliveries."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox()
        self.clock = 0
        self.told: dict[tuple[str, str, str], int] = {}
        self.due: dict[tuple[str, str, str], int] = {}

    @rule(room=ROOMS, realm=REALMS, names=NAMES)
    def say(self, room: str, realm: str, names: frozenset[str]) -> None:
        self.clock += 1
        self.outbox.put(Nudge(room, "a", self.clock), realm=realm, names=names)
        self.due |= {(realm, room, name): self.clock for name in names}

    @rule()
    def deliver(self) -> None:
        for parcel in self.outbox.take():
            for name in parcel.names:
                self.told[parcel.realm, parcel.nudge.conv, name] = parcel.nudge.at

    @rule(room=ROOMS, realm=REALMS, names=NAMES)
    def fail_to_deliver_while_somebody_speaks(self, room: str, realm: str, names: frozenset[str]) -> None:
        taken = self.outbox.take()
        self.say(room, realm, names)
        self.outbox.restore(taken)

    @invariant()
    def at_most_one_waits_for_each_room(self) -> None:
        assert len(self.outbox) <= 6

    def teardown(self) -> None:
        self.deliver()
        assert all(self.told[key] >= at for key, at in self.due.items())
        assert self.told.keys() == self.due.keys()


TestBursts = Bursts.TestCase


def test_the_newest_nudge_goes_to_the_names_of_both() -> None:
    outbox = Outbox()
    outbox.put(Nudge("api", "a", 1), realm="main", names={"work3"})
    outbox.put(Nudge("api", "b", 2), realm="main", names=["devmac"])
    assert outbox.take() == [Parcel("main", frozenset({"work3", "devmac"}), Nudge("api", "b", 2))]
    assert outbox.take() == []


def test_what_is_put_back_gives_way_to_what_is_newer() -> None:
    outbox = Outbox()
    outbox.put(Nudge("api", "a", 1), realm="main", names={"work3"})
    taken = outbox.take()
    outbox.put(Nudge("api", "b", 2), realm="main", names={"devmac"})
    outbox.restore(taken)
    assert outbox.take() == [Parcel("main", frozenset({"work3", "devmac"}), Nudge("api", "b", 2))]


@given(st.integers(1, 20), st.integers(0, 40))
def test_too_many_rooms_drop_those_that_waited_longest(limit: int, rooms: int) -> None:
    outbox = Outbox(limit=limit)
    for number in range(rooms):
        outbox.put(Nudge(f"room{number}", "a", number), realm="main", names={"work3"})
    assert outbox.dropped == max(0, rooms - limit)
    assert [parcel.nudge.at for parcel in outbox.take()] == list(range(rooms))[-limit:]
