"""The protocol core's rules, without a socket."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_bridge.actions import (
    Acknowledge,
    Action,
    Answer,
    Ask,
    Attach,
    Detach,
    Emit,
    Find,
    Forget,
    HangUp,
    Keep,
    LookAgain,
    Open,
    Whose,
)
from broker_bridge.frames import MOST_VALUES, TooMany, loads
from broker_bridge.handlers import HANDLERS
from broker_bridge.limits import Limits
from broker_bridge.memory_store import MemoryStore
from broker_bridge.nerve import Admission, Credential
from broker_bridge.nudge import DELIVERED, Nudge
from broker_bridge.protocol import Protocol
from broker_bridge.queues import Retry, Unkept
from tests.contract.nerves import ADMISSIONS
from tests.contract.storing import answer, now

NUDGE = Nudge("api", "work3-agent#1", 1796000000000)
ENVELOPE = {
    "event": "msg",
    "message": {"conv": "api", "from": "work3-agent#1", "at": 1796000000000},
    "from": "agent-comms",
}


class Hall:
    """A core, and everything that it sent, answered and closed."""

    def __init__(
        self, limits: Limits | None = None, *, lookup_at_once: bool = True, store: MemoryStore | None = None
    ) -> None:
        self.core = Protocol(limits or Limits(), keeps=store is not None)
        self.store = store
        self.attached: dict[int, Attach] = {}
        self.sent: dict[str, list[tuple[str, Any]]] = defaultdict(list)
        self.answered: Counter[Any] = Counter()
        self.acks: dict[Any, Any] = {}
        self.closed: list[str] = []
        self.asked: list[Ask] = []
        self.whose: list[Whose] = []
        self.whose_at_once = True
        self.now, self.frames = 0.0, 0
        self._at_once = lookup_at_once

    def perform(self, actions: list[Action] | list[Emit]) -> None:
        for action in actions:
            match action:
                case Emit(to, event, payload):
                    self.sent[to].append((event, payload))
                case HangUp(connection):
                    self.closed.append(connection)
                    self.perform(self.core.disconnected(connection))
                case Answer(ref, ack):
                    self.answered[ref] += 1
                    self.acks[ref] = ack
                case Ask():
                    self.asked.append(action)
                case Open() | Find() | Keep() | Acknowledge():
                    assert self.store is not None
                    self.perform(self.core.answered(action, answer(self.store, action)))
                case Whose():
                    self.whose.append(action)
                case Attach():
                    self.attached[action.queue] = action
                case Detach(connection, queue):
                    assert self.attached.pop(queue).connection == connection
                case Forget(realm, queue):
                    assert self.store is not None
                    now(self.store.forget(realm, queue))
        if self._at_once:
            self.look_up()
        if self.whose_at_once:
            self.tell_whose()

    def look_up(self) -> None:
        while self.asked:
            ask = self.asked.pop(0)
            self.perform(self.core.admitted(ask.connection, ADMISSIONS.get(ask.credential.value)))

    def tell_whose(self) -> None:
        while self.whose:
            asked = self.whose.pop(0)
            named = [each.name for each in ADMISSIONS.values() if each.kind == "client"]
            self.perform(self.core.answered(asked, asked.name in named))

    def send(self, id: str, event: object, payload: object = None) -> None:
        self.frames += 1
        self.now += 0.1
        self.perform(self.core.frame(id, event, payload, now=self.now, ref=self.frames))

    def log_in(self, id: str, token: str, **subscription: Any) -> None:
        self.core.connected(id, now=self.now)
        self.send(id, "AUTHENTICATION", {"token": token})
        self.send(id, "CONSUMER", {"name": id, "id": id})
        self.subscribe(id, **subscription)

    def subscribe(self, id: str, **changed: Any) -> None:
        wanted = {"event": "msg", "producer": "agent-comms", "consumer": id, "consumer_id": id}
        self.send(id, "SUBSCRIBE", {**wanted, **changed})

    def nudge(self, *names: str, realm: str = "main") -> None:
        self.perform(self.core.nudge(NUDGE, realm=realm, names=names))

    def consumed(self, id: str) -> list[tuple[str, Any]]:
        return [(event, payload) for event, payload in self.sent[id] if event.upper().startswith("CONSUME")]

    def events(self, id: str, event: str) -> list[Any]:
        return [payload for name, payload in self.sent[id] if name == event]


def test_a_nudge_is_delivered_as_exactly_conv_from_and_at() -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac")
    hall.nudge("devmac")
    assert hall.consumed("ear") == [("CONSUME-agent-comms-msg", ENVELOPE)]


@pytest.mark.parametrize(
    ("changed", "event"),
    [
        ({"producer": "AGENT-Comms", "event": "MSG"}, "CONSUME-agent-comms-msg"),
        ({"producer": "TYO-MQ-ALL"}, "CONSUME-tyo-mq-all-msg"),
        ({"event": "TM-ALL", "scope": "all"}, "CONSUME-agent-comms-TM-ALL"),
        ({"scope": "all"}, "CONSUME-agent-comms-TM-ALL"),
        ({"event": "#", "mode": "topic", "producer": "TYO-MQ-ALL"}, "CONSUME-tyo-mq-all-#"),
        ({"event": "+", "mode": "topic"}, "CONSUME-agent-comms-+"),
        ({"group": "g"}, "CONSUME-agent-comms-msg"),
        ({"durable": True, "ack": True, "manual_ack": True, "retry": 5}, "CONSUME-agent-comms-msg"),
    ],
)
def test_whatever_way_it_subscribes_a_box_hears_its_own_nudges_alone(changed: Any, event: str) -> None:
    hall = Hall()
    for id, token in (("ear", "tok-devmac"), ("zoo", "tok-zoo"), ("far", "tok-elsewhere")):
        hall.log_in(id, token, **changed)
    hall.nudge("devmac")
    assert hall.consumed("ear") == [(event, ENVELOPE)]
    assert hall.consumed("zoo") == hall.consumed("far") == []


def test_unsubscribe_works_by_the_pair_and_by_the_object() -> None:
    for named in ("agent-comms-msg", "Agent-Comms-MSG", {"event": "msg", "producer": "agent-comms"}):
        hall = Hall()
        hall.log_in("ear", "tok-devmac")
        hall.send("ear", "UNSUBSCRIBE", named)
        hall.nudge("devmac")
        assert hall.consumed("ear") == []


def test_another_box_under_ones_consumer_name_neither_hears_nor_disturbs() -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac")
    hall.core.connected("twin", now=hall.now)
    hall.send("twin", "AUTHENTICATION", {"token": "tok-zoo"})
    hall.send("twin", "CONSUMER", {"name": "ear", "id": "ear", "consumer_id": "ear"})
    hall.send("twin", "SUBSCRIBE", {"event": "msg", "producer": "agent-comms", "consumer": "ear"})
    hall.nudge("devmac")
    assert hall.closed == []
    assert len(hall.consumed("ear")) == 1
    assert hall.consumed("twin") == []


def test_the_same_box_takes_its_consumer_name_over_from_its_older_connection() -> None:
    hall = Hall()
    hall.log_in("old", "tok-work3")
    hall.send("old", "CONSUMER", {"name": "ear"})
    hall.core.connected("new", now=hall.now)
    hall.send("new", "AUTHENTICATION", {"token": "tok-work3-next"})
    hall.send("new", "CONSUMER", {"name": "ear"})
    assert hall.closed == ["old"]
    assert hall.events("old", "ERROR")[0]["code"] == -3
    hall.subscribe("new")
    hall.nudge("work3")
    assert len(hall.consumed("new")) == 1


def test_frames_wait_for_the_login_before_them_in_order() -> None:
    hall = Hall(lookup_at_once=False)
    hall.core.connected("ear", now=0)
    hall.send("ear", "AUTHENTICATION", {"token": "tok-devmac"})
    hall.send("ear", "CONSUMER", {"name": "ear"})
    hall.subscribe("ear")
    hall.send("ear", "PING", {})
    hall.nudge("devmac")
    assert hall.sent["ear"] == []
    assert dict(hall.answered) == {}
    hall.look_up()
    hall.nudge("devmac")
    assert [event for event, _ in hall.sent["ear"]] == ["AUTH_OK", DELIVERED]
    assert dict(hall.answered) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_frames_behind_a_refused_login_are_refused() -> None:
    hall = Hall(lookup_at_once=False)
    hall.core.connected("ear", now=0)
    hall.send("ear", "AUTHENTICATION", {"token": "nope", "realm": "main", "role": "consumer"})
    hall.subscribe("ear")
    hall.look_up()
    hall.nudge("devmac")
    assert [event for event, _ in hall.sent["ear"]] == ["AUTH_FAIL", "AUTH_FAIL"]
    hall.send("ear", "AUTHENTICATION", {"token": "tok-devmac"})
    hall.look_up()
    assert hall.events("ear", "AUTH_OK")


def test_a_login_that_nobody_could_look_up_is_told_so_and_hung_up_on() -> None:
    hall = Hall(lookup_at_once=False)
    hall.core.connected("ear", now=0)
    hall.send("ear", "AUTHENTICATION", {"token": "tok-devmac"})
    hall.subscribe("ear")
    hall.perform(hall.core.unanswered("ear"))
    assert hall.events("ear", "AUTH_FAIL")[0]["code"] == 503
    assert hall.closed == ["ear"]
    assert dict(hall.answered) == {1: 1, 2: 1}


@pytest.mark.parametrize(
    "frame",
    [
        {"event": "msg", "from": "agent-comms"},
        {"event": "MSG", "from": "Agent-Comms"},
        {"event": "comms-msg", "from": "agent"},
        {"event": "COMMS-msg", "from": "Agent"},
        {"event": "msg", "from": "agent-comms", "method": "broadcast", "broadcast": "realm"},
        {"event": "anything", "from": "agent-comms"},
        {"event": "agent-comms-msg", "from": "tool", "method": "broadcast", "broadcast": "realm"},
    ],
)
@pytest.mark.parametrize("token", ["tok-devmac", "tok-tool"])
def test_nobody_but_the_record_produces_what_reads_like_a_nudge(frame: Any, token: str) -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac")
    hall.log_in("any", "tok-devmac", producer="TYO-MQ-ALL")
    hall.log_in("topic", "tok-devmac", event="#", mode="topic")
    hall.log_in("odd", "tok-devmac", producer="agent", event="comms-msg")
    hall.log_in("liar", token)
    hall.send("liar", "PRODUCER", {"name": frame["from"]})
    hall.send("liar", "PRODUCE", {"message": ENVELOPE["message"], "to": ["devmac"], **frame})
    assert hall.consumed("ear") == hall.consumed("any") == hall.consumed("odd") == []
    assert DELIVERED not in [event for event, _ in hall.consumed("topic")]
    assert all(payload["from"] == "tool" for _, payload in hall.consumed("topic"))


def test_the_record_elsewhere_names_whom_to_tell_and_the_names_go_no_further() -> None:
    hall = Hall()
    for id, token in (("ear", "tok-devmac"), ("zoo", "tok-zoo"), ("far", "tok-elsewhere")):
        hall.log_in(id, token)
    hall.log_in("record", "tok-record")
    told = {"event": "msg", "from": "agent-comms", "message": ENVELOPE["message"], "to": ["devmac", "work3"]}
    hall.send("record", "PRODUCE", {**told, "realm": "main"})
    assert hall.consumed("ear") == [(DELIVERED, ENVELOPE)]
    assert hall.consumed("zoo") == hall.consumed("far") == []
    hall.send("record", "PRODUCE", {**told, "realm": "other"})
    assert hall.consumed("far") == [(DELIVERED, ENVELOPE)]


@pytest.mark.parametrize("wrong", [{"message": "text"}, {"realm": None}, {"to": "devmac"}, {"to": None}])
def test_the_record_cannot_send_anything_but_nudges(wrong: Any) -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac")
    hall.log_in("record", "tok-record")
    told = {"event": "msg", "from": "agent-comms", "message": ENVELOPE["message"], "to": ["devmac"]}
    hall.send("record", "PRODUCE", {**told, "realm": "main", **wrong})
    assert hall.consumed("ear") == []


def test_more_than_conv_from_and_at_is_stripped_from_the_records_frame() -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac")
    hall.log_in("record", "tok-record-main")
    message = {**ENVELOPE["message"], "body": "a secret"}  # type: ignore[dict-item]
    told = {"event": "msg", "from": "agent-comms", "message": message, "to": ["devmac"], "enc": {"x": 1}}
    hall.send("record", "PRODUCE", told)
    assert hall.consumed("ear") == [(DELIVERED, ENVELOPE)]


def test_a_producers_name_is_its_holders_while_it_is_connected() -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac", producer="build", event="done")
    hall.log_in("tool", "tok-tool")
    hall.log_in("tool2", "tok-tool2")
    hall.send("tool", "PRODUCER", {"name": "build"})
    hall.send("tool2", "PRODUCE", {"event": "done", "from": "Build", "message": "forged"})
    hall.send("tool", "PRODUCE", {"event": "done", "from": "build", "message": "real"})
    assert [payload["message"] for _, payload in hall.consumed("ear")] == ["real"]
    hall.perform(hall.core.disconnected("tool"))
    hall.send("tool2", "PRODUCE", {"event": "done", "from": "build", "message": "its turn"})
    assert [payload["message"] for _, payload in hall.consumed("ear")] == ["real", "its turn"]


def produce(hall: Hall, message: Any, **changed: Any) -> None:
    hall.send("tool", "PRODUCE", {"event": "job", "from": "build", "message": message, **changed})


def messages(hall: Hall, id: str) -> list[Any]:
    return [payload["message"] for _, payload in hall.consumed(id)]


def test_a_group_shares_what_others_all_get() -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    for id, token in (("w0", "tok-work3"), ("w1", "tok-devmac"), ("w2", "tok-zoo")):
        hall.log_in(id, token, producer="build", event="job", group="workers")
    hall.log_in("far", "tok-elsewhere", producer="build", event="job", group="workers")
    hall.log_in("all", "tok-devmac", producer="TYO-MQ-ALL", event="job")
    for number in range(6):
        produce(hall, number)
    assert [messages(hall, id) for id in ("w0", "w1", "w2", "far")] == [[0, 3], [1, 4], [2, 5], []]
    assert messages(hall, "all") == [0, 1, 2, 3, 4, 5]
    hall.perform(hall.core.disconnected("w1"))
    produce(hall, 6)
    produce(hall, 7)
    assert (messages(hall, "w0"), messages(hall, "w2")) == ([0, 3, 6], [2, 5, 7])


def test_boxes_in_one_group_each_hear_their_own_nudges() -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac", group="g")
    hall.log_in("zoo", "tok-zoo", group="g")
    hall.nudge("devmac", "zoo")
    hall.nudge("devmac")
    assert (len(hall.consumed("ear")), len(hall.consumed("zoo"))) == (2, 1)


def test_a_broadcast_reaches_whoever_registered_in_the_realm_and_nobody_else() -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    hall.log_in("ear", "tok-devmac")
    hall.log_in("far", "tok-elsewhere")
    hall.core.connected("nameless", now=0)
    hall.send("nameless", "AUTHENTICATION", {"token": "tok-zoo"})
    produce(hall, "all hands", method="broadcast", broadcast="realm")
    names = ["CONSUME-job", "CONSUME-build-job", "CONSUME-tyo-mq-all-job", "CONSUME-build-TM-ALL"]
    for id in ("tool", "ear"):
        assert [event for event, _ in hall.consumed(id)] == names
        assert hall.events(id, "build-TM-ALL-CONSUME") == [
            {"event": "job", "message": "all hands", "from": "build"}
        ]
    assert hall.sent["far"][-1][0] == hall.sent["nameless"][-1][0] == "AUTH_OK"


def test_a_broadcast_to_a_group_reaches_each_member_once_but_never_as_the_record() -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    hall.log_in("w0", "tok-work3", producer="build", event="job", group="g")
    hall.subscribe("w0", producer="build", event="other", group="g")
    hall.log_in("w1", "tok-zoo", producer="x", event="y", group="g")
    hall.log_in("other", "tok-zoo", producer="x", event="y", group="h")
    hall.log_in("ear", "tok-devmac", group="g")
    hall.log_in("odd", "tok-devmac", producer="agent", event="comms-msg", group="g")
    produce(hall, "stop", method="broadcast", broadcast="group", group="g")
    assert [event for event, _ in hall.consumed("w0")] == ["CONSUME-build-job"]
    assert [event for event, _ in hall.consumed("w1")] == ["CONSUME-x-y"]
    assert hall.consumed("other") == hall.consumed("ear") == hall.consumed("odd") == []
    produce(hall, "stop", method="broadcast", broadcast="group")
    assert [error["code"] for error in hall.events("tool", "ERROR")] == [-2]


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("tool", "agent-comms-msg"),
        ("tool", "Agent-Comms-TM-ALL"),
        ("agent", "comms-#"),
        ("Agent", "COMMS-x"),
        ("CONSUME-agent-comms-msg", "x"),
        ("consume-Agent-comms", "x"),
    ],
)
@pytest.mark.parametrize("to", ["realm", "group"])
def test_no_broadcast_bears_a_name_like_the_records(name: str, event: str, to: str) -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    hall.log_in("ear", "tok-devmac", producer="x", event="y", group="g")
    produce(hall, 1, **{"from": name}, event=event, method="broadcast", broadcast=to, group="g")
    assert hall.consumed("ear") == []
    assert [refusal["code"] for refusal in hall.events("tool", "AUTH_FAIL")] == [403]


class Slow(Hall):
    """A core whose store answers when it is told to."""

    def perform(self, actions: list[Action] | list[Emit]) -> None:
        questions = [each for each in actions if isinstance(each, Open | Find | Keep | Acknowledge)]
        super().perform([each for each in actions if each not in questions])
        self.questions = [*getattr(self, "questions", []), *questions]

    def go_on(self) -> None:
        assert self.store is not None
        asked = self.questions.pop(0)
        self.perform(self.core.answered(asked, answer(self.store, asked)))


def test_frames_wait_in_order_for_the_store_and_a_lost_connection_loses_no_message() -> None:
    hall = Slow(store=MemoryStore())
    hall.log_in("ear", "tok-devmac", producer="build", event="job", durable=True)
    assert hall.consumed("ear") == []
    hall.go_on()
    hall.log_in("tool", "tok-tool")
    done = Counter(hall.answered)
    produce(hall, "a")
    produce(hall, "b")
    assert hall.answered == done, "one waits for the store, the other for it"
    assert len(hall.questions) == 1
    hall.perform(hall.core.disconnected("tool"))
    while hall.questions:
        hall.go_on()
    assert hall.store is not None
    assert [each.envelope["message"] for each in hall.store._messages.values()] == ["a"]
    assert hall.answered == Counter(range(1, hall.frames + 1))


def test_what_the_store_does_not_say_is_told_and_done_by_nobody() -> None:
    hall = Slow(store=MemoryStore())
    hall.log_in("ear", "tok-devmac", producer="TYO-MQ-ALL", event="job")
    hall.go_on()
    hall.log_in("tool", "tok-tool", durable=True, producer="x", event="y")
    hall.perform(hall.core.answered(hall.questions.pop(), Unkept()))
    assert [error["code"] for error in hall.events("tool", "ERROR")] == [-7]
    produce(hall, "a")
    hall.perform(hall.core.answered(hall.questions.pop(), Unkept()))
    assert [error["code"] for error in hall.events("tool", "ERROR")] == [-7, -7]
    hall.send("tool", "ACK", {"msgId": "msg-1"})
    hall.perform(hall.core.answered(hall.questions.pop(), Unkept()))
    assert hall.events("tool", "ACK_FAIL")[0]["code"] == 500
    assert hall.consumed("ear") == []
    assert hall.answered == Counter(range(1, hall.frames + 1))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"consumer": "ANONYMOUS", "consumer_id": None}, -2),
        ({"consumer_id": "a\0b"}, -2),
        ({"consumer_id": "\ud800"}, -2),
        ({"event": "a\nb"}, -2),
    ],
)
def test_a_durable_subscription_needs_names_that_can_be_kept(changed: Any, code: int) -> None:
    hall = Hall(store=MemoryStore())
    hall.log_in("ear", "tok-devmac", **{"producer": "build", "event": "job", "durable": True, **changed})
    assert [error["code"] for error in hall.events("ear", "ERROR")] == [code]
    assert hall.attached == {}


@pytest.mark.parametrize(
    ("body", "retry"),
    [
        ({"ack": True}, Retry(30, 3, 5, False)),
        ({"manual_ack": 1, "ack_timeout": "500ms"}, Retry(0.5, 3, 5, False)),
        (
            {"ack": True, "ack_timeout": 2, "retry": {"max_attempts": 7, "delay": "2m"}},
            Retry(2, 7, 120, False),
        ),
        ({"ack": True, "ack_timeout": "soon", "retry": "often"}, Retry(30, 3, 5, False)),
        (
            {"ack": True, "ack_timeout": -1, "retry": {"max_attempts": -1, "delay": True}},
            Retry(0.05, 1, 5, False),
        ),
        ({"ack": True, "retry": {"max_attempts": 10**9, "delay": 10**400}}, Retry(30, 20, 3600, False)),
        ({"require_ack": True, "retry": {"backoff": "exponential"}}, Retry(30, 3, 5, True)),
        ({"ack": False}, None),
    ],
)
def test_how_retries_are_read(body: Any, retry: Retry | None) -> None:
    assert Retry.read(body) == retry


@pytest.mark.parametrize("event", ["PRODUCER", "PRODUCE", "PRODUCE_CHUNK"])
def test_a_box_only_listens(event: str) -> None:
    hall = Hall()
    hall.log_in("box", "tok-devmac")
    hall.send("box", event, {"name": "p", "event": "e", "from": "p", "message": 1})
    assert hall.events("box", "AUTH_FAIL") == [
        {"code": 403, "message": f"A token with the role consumer may not send {event}"}
    ]


def test_bounds_of_one_connection() -> None:
    limits = Limits(subscriptions=3, names=2, logins=2, held=2, links=2)
    hall = Hall(limits)
    hall.log_in("tool", "tok-tool")
    for number in range(5):
        hall.subscribe("tool", event=f"e{number}")
        hall.send("tool", "CONSUMER", {"name": f"c{number}"})
        hall.send("tool", "PRODUCE", {"event": "e", "from": f"p{number}", "message": 1})
    assert [error["code"] for error in hall.events("tool", "ERROR")].count(-5) == 3
    assert [error["code"] for error in hall.events("tool", "ERROR")].count(-1) == 4
    assert len(hall.events("tool", "AUTH_FAIL")) == 3
    hall.core.connected("guesser", now=hall.now)
    for token in ("a", "b"):
        hall.send("guesser", "AUTHENTICATION", {"token": token})
    assert hall.closed == ["guesser"]
    for id in ("first", "second", "third"):
        hall.log_in(id, "tok-devmac")
    assert hall.closed == ["guesser", "first"]


def test_frames_that_wait_for_a_login_are_bounded() -> None:
    hall = Hall(Limits(held=2), lookup_at_once=False)
    hall.core.connected("ear", now=0)
    for event in ("AUTHENTICATION", "PING", "PING", "PING"):
        hall.send("ear", event, {"token": "tok-devmac"})
    assert hall.closed == ["ear"]
    assert dict(hall.answered) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_a_flood_is_told_once_a_second_and_at_last_hung_up_on() -> None:
    hall = Hall(Limits(per_second=1, burst=5, flood=20))
    hall.core.connected("ear", now=0)
    for number in range(40):
        hall.perform(hall.core.frame("ear", "HELLO", {}, now=0.01 * number, ref=number))
    assert hall.events("ear", "RATE_LIMITED") == [
        {"code": 429, "reason": "messages_per_second", "retry_after": 1}
    ]
    assert hall.closed == ["ear"]
    assert set(hall.answered.values()) == {1}


CLIENT = Admission("main", "devmac", "both", "t20", "client")
STRANGERS = {
    f"open{n}": Admission("main", f"ANONYMOUS-{n}", "consumer", "anonymous_1", "anonymous") for n in range(4)
}
"""By the realm that they name; each has a name of its own."""


def admitted(hall: Hall, id: str, admission: Admission) -> None:
    hall.core.connected(id, now=hall.now)
    hall.send(id, "AUTHENTICATION", {"token": "looked up by the test"})
    hall.perform(hall.core.admitted(id, admission))


def test_a_program_of_a_boxs_name_hears_none_of_its_nudges_and_takes_none_of_its_names() -> None:
    hall = Hall(lookup_at_once=False)
    admitted(hall, "ear", ADMISSIONS["tok-devmac"])
    admitted(hall, "program", CLIENT)
    for id in ("ear", "program"):
        hall.send(id, "CONSUMER", {"name": "ear", "id": "ear"})
        hall.subscribe(id)
        hall.subscribe(id, producer="TYO-MQ-ALL", event="#", mode="topic")
    hall.nudge("devmac")
    assert hall.closed == []
    assert len(hall.consumed("ear")) == 2
    assert hall.consumed("program") == []


def test_a_program_of_the_records_name_is_not_the_record() -> None:
    hall = Hall(lookup_at_once=False)
    admitted(hall, "ear", ADMISSIONS["tok-devmac"])
    admitted(hall, "liar", Admission("main", "agent-comms", "both", "t21", "client"))
    hall.subscribe("ear")
    told = {"event": "msg", "from": "agent-comms", "message": ENVELOPE["message"], "to": ["devmac"]}
    hall.send("liar", "PRODUCER", {"name": "agent-comms"})
    hall.send("liar", "PRODUCE", {**told, "realm": "main"})
    assert hall.consumed("ear") == []
    assert [refusal["code"] for refusal in hall.events("liar", "AUTH_FAIL")] == [403, 403]


def test_only_the_record_can_have_the_nerve_look_again() -> None:
    hall = Hall(lookup_at_once=False)
    admitted(hall, "program", CLIENT)
    admitted(hall, "record", ADMISSIONS["tok-record"])
    asked = {
        id: [a for a in hall.core.frame(id, "LOOK_AGAIN", {}, now=99, ref=0) if isinstance(a, LookAgain)]
        for id in ("program", "record")
    }
    assert asked == {"program": [], "record": [LookAgain()]}


def test_strangers_do_not_take_each_others_names_over_and_are_bounded() -> None:
    hall = Hall(Limits(anonymous=3), lookup_at_once=False)
    for name, admission in STRANGERS.items():
        admitted(hall, name, admission)
        hall.send(name, "CONSUMER", {"name": "ANONYMOUS", "id": "ear"})
    assert hall.closed == ["open3"]
    assert hall.events("open3", "AUTH_FAIL") == [
        {"code": 503, "message": "There are as many anonymous listeners as there may be"}
    ]
    admitted(hall, "box", ADMISSIONS["tok-devmac"])
    assert hall.events("box", "AUTH_OK")
    assert hall.closed == ["open3"]


@pytest.mark.parametrize(
    ("body", "credential"),
    [
        ({"token": "t", "ticket": "k", "realm": "r", "role": "both"}, Credential("token", "t")),
        ({"ticket": "k", "realm": "r", "role": "producer"}, Credential("ticket", "k")),
        ({"realm": "r"}, Credential("realm", "r")),
        ({"realm": "r", "role": "consumer", "key": "x"}, Credential("realm", "r")),
        ({"realm": "r", "role": "both"}, 403),
        ({"realm": "r", "role": "manager"}, 401),
        ({"role": "consumer"}, 401),
        ({"ticket": ["k"]}, 401),
        ({"realm": "r\n"}, 401),
        ({"token": "", "ticket": None, "realm": 0}, 401),
    ],
)
def test_what_somebody_logs_in_with(body: Any, credential: Credential | int) -> None:
    hall = Hall(lookup_at_once=False)
    hall.core.connected("it", now=0)
    hall.send("it", "AUTHENTICATION", body)
    refused = [refusal["code"] for refusal in hall.events("it", "AUTH_FAIL")]
    assert [ask.credential for ask in hall.asked] + refused == [credential]


def test_a_secret_is_not_shown() -> None:
    assert "t0k3n" not in repr(Credential("token", "t0k3n"))


FIELDS = [
    "name",
    "id",
    "consumer_id",
    "event",
    "producer",
    "consumer",
    "from",
    "to",
    "message",
    "mode",
    "scope",
    "group",
    "token",
    "realm",
    "role",
    "method",
    "broadcast",
    "msgId",
    "transferId",
    "durable",
    "ack",
    "ack_timeout",
    "retry",
    "guaranteed",
    "ttl",
    "index",
    "total",
    "data",
    "__proto__",
]
NAMES = [
    "agent-comms",
    "Agent-Comms",
    "agent",
    "comms-msg",
    "msg",
    "MSG",
    "#",
    "+",
    "TYO-MQ-ALL",
    "TM-ALL",
    "ear",
    "tool",
    "main",
    "tok-zoo",
    "tok-tool",
    "all",
    "topic",
    "realm",
    "devmac",
    "a-b",
    "broadcast",
    "group",
]
KEYS = st.sampled_from(FIELDS) | st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)
BODIES = st.dictionaries(KEYS, st.sampled_from([*NAMES, "", "x" * 300]) | JSON, max_size=8)
PAYLOADS = JSON | BODIES | BODIES.map(json.dumps) | st.just("msg" * 99_999)
EVENTS = st.sampled_from([*HANDLERS, "HELLO", "DEBUG", "connect"]) | JSON


@pytest.mark.long
@given(
    st.lists(st.tuples(st.sampled_from(["stranger", "zoo", "tool", "ghost"]), EVENTS, PAYLOADS), max_size=30),
    st.booleans(),
)
def test_no_frame_raises_disturbs_others_or_lets_anybody_hear_more(
    frames: list[tuple[str, Any, Any]], keeps: bool
) -> None:
    hall = Hall(store=MemoryStore() if keeps else None)
    hall.log_in("ear", "tok-devmac")
    hall.core.connected("stranger", now=0)
    hall.log_in("zoo", "tok-zoo")
    hall.log_in("tool", "tok-tool")
    for id, event, payload in frames:
        hall.send(id, event, payload)
    assert hall.answered == Counter(range(1, hall.frames + 1))
    assert "ear" not in hall.closed
    assert [
        event for event, _ in hall.consumed("ear") if event.lower().startswith("consume-agent-comms-")
    ] == []
    broadcasts = hall.consumed("ear")
    hall.nudge("devmac")
    assert hall.consumed("ear") == [*broadcasts, (DELIVERED, ENVELOPE)]
    heard = [payload for id in ("stranger", "zoo", "tool", "ghost") for _, payload in hall.consumed(id)]
    assert ENVELOPE not in heard


@given(st.lists(st.sampled_from(["in", "subscribe", "out"]), max_size=12))
def test_nothing_is_left_of_connections_that_are_gone(steps: list[str]) -> None:
    hall = Hall()
    for number, step in enumerate(steps):
        if step == "in":
            hall.log_in(f"c{number}", "tok-tool")
            hall.send(f"c{number}", "PRODUCER", {"name": "p"})
        elif step == "subscribe":
            hall.log_in(f"c{number}", "tok-devmac", producer="p", event="e")
    for number in range(len(steps)):
        hall.perform(hall.core.disconnected(f"c{number}"))
    assert hall.core.admissions == {}
    registry = hall.core._registry
    assert (registry._connections, registry._realms, registry._consumers) == ({}, {}, {})


def test_a_program_of_a_boxs_name_has_queues_of_its_own_and_a_stranger_none() -> None:
    wanted = {"event": "job", "producer": "build", "durable": True, "ack": True, "consumer_id": "w"}
    hall = Hall(store=MemoryStore())
    opened: dict[str, list[str]] = {}
    for id, admission in (
        ("box", ADMISSIONS["tok-devmac"]),
        ("program", CLIENT),
        ("stranger", STRANGERS["open1"]),
    ):
        hall.core.connected(id, now=hall.now)
        hall.core.frame(id, "AUTHENTICATION", {"token": "looked up by the test"}, now=hall.now, ref=id)
        hall.core.admitted(id, admission)
        asked = hall.core.frame(id, "SUBSCRIBE", wanted, now=hall.now, ref=id)
        opened[id] = [action.queue.holder for action in asked if isinstance(action, Open)]
    assert opened == {"box": ["devmac"], "program": ["client devmac"], "stranger": []}


def test_the_links_of_one_holder_share_a_rate_of_what_they_produce() -> None:
    hall = Hall(Limits(produced_per_second=1, produced_burst=3), lookup_at_once=False)
    other = replace(CLIENT, name="other")
    for id, admission in (("a", CLIENT), ("b", CLIENT), ("other", other), ("ear", other)):
        admitted(hall, id, admission)
    hall.send("ear", "SUBSCRIBE", {"event": "job", "producer": "tyo-mq-all"})
    job = {"event": "job", "from": "build"}
    for id in ("a", "b", "a", "b", "b"):
        hall.send(id, "PRODUCE", job)
    hall.send("other", "PRODUCE", {**job, "from": "else"})
    limited = {"code": 429, "reason": "messages_per_second", "retry_after": 1}
    assert {id: hall.events(id, "RATE_LIMITED") for id in ("a", "b", "other")} == {
        "a": [],
        "b": [limited],
        "other": [],
    }
    assert len([event for event, _ in hall.sent["ear"] if event.startswith("CONSUME")]) == 4
    hall.now += 1
    hall.send("b", "PRODUCE", job)
    assert len([event for event, _ in hall.sent["ear"] if event.startswith("CONSUME")]) == 5
    assert hall.closed == []


@pytest.mark.parametrize(
    "body", [{"a": [1]}, {"a": None}, {"a": {"b": {}}}, {str(number): number for number in range(40)}]
)
def test_a_ping_of_any_object_is_acknowledged_with_it(body: dict[str, Any]) -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac")
    hall.send("ear", "PING", body)
    assert json.loads(hall.acks[hall.frames]).items() >= {**body, "pong": "PONG"}.items()


@pytest.mark.parametrize("event", ["AUTHORIZATION_REQUEST", "AUTHORIZATION_NEXT", "AUTHORIZATION_DECIDE"])
def test_what_manages_the_original_is_not_offered(event: str) -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac")
    hall.send("ear", event, {})
    assert hall.acks[hall.frames]["code"] == 501


@pytest.mark.parametrize("event", ["PRODUCER", "PRODUCE"])
def test_a_producer_of_too_many_names_is_told_of_the_limit(event: str) -> None:
    hall = Hall(Limits(names=2))
    hall.log_in("tool", "tok-tool")
    for name in ("a", "b", "c"):
        hall.send("tool", event, {"name": name, "from": name, "event": "done", "message": 1})
    (refusal,) = hall.events("tool", "AUTH_FAIL")
    assert refusal == {"code": 403, "message": "A connection produces under at most 2 names"}


def test_a_message_that_is_nested_too_deep_is_called_so() -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    deep: Any = 1
    for _ in range(600):
        deep = [deep]
    hall.send("tool", "PRODUCE", {"event": "done", "from": "build", "message": deep})
    (refusal,) = hall.events("tool", "ERROR")
    assert "500 deep" in refusal["message"]


@pytest.mark.parametrize("value", ["1", "[]", '{"a":1}', '"a"', '"\\"a"'])
def test_a_frame_holds_many_values_but_not_without_end(value: str) -> None:
    def listed(values: int) -> str:
        return f"[{','.join([value] * values)}]"

    assert len(loads(listed(MOST_VALUES))) == MOST_VALUES
    with pytest.raises(TooMany):
        loads(listed(MOST_VALUES + 1))


@pytest.mark.parametrize("text", ["a, ", "\\\\, ", '\\", ', "[,", r"\n,"])
def test_commas_in_text_are_no_values(text: str) -> None:
    assert loads(f'["{text * (MOST_VALUES + 1)}"]') == [json.loads(f'"{text}"') * (MOST_VALUES + 1)]


def test_a_message_in_pieces_of_too_many_values_is_an_error() -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac", producer="build", event="done")
    hall.log_in("tool", "tok-tool")
    text = json.dumps({"event": "done", "from": "build", "message": [1] * (MOST_VALUES + 1)})
    for index, data in enumerate((text[:100_000], text[100_000:])):
        hall.send("tool", "PRODUCE_CHUNK", {"transferId": "t", "index": index, "total": 2, "data": data})
    assert [refusal["code"] for refusal in hall.events("tool", "ERROR")] == [-2]
    assert hall.consumed("ear") == []


def test_nobody_is_told_of_strangers_who_are_told_of_producers() -> None:
    hall = Hall(lookup_at_once=False)
    for id, admission in (("program", CLIENT), ("open0", STRANGERS["open0"])):
        admitted(hall, id, admission)
    hall.send("program", "PRODUCER", {"name": "early", "id": "p"})
    hall.send("open0", "CONSUMER", {"name": "come and see", "id": "s"})
    hall.send("open0", "SUBSCRIBE", {"event": "x", "producer": "TYO-MQ-ALL", "consumer": "come and see"})
    hall.send("program", "PRODUCER", {"name": "late", "id": "p"})
    assert [notice["producer"] for notice in hall.events("open0", "CONNECT-s")] == ["late"]
    hall.perform(hall.core.disconnected("open0"))
    assert {event for event, _ in hall.sent["program"]} == {"AUTH_OK"}


def test_how_many_notices_one_holder_causes_is_bounded() -> None:
    hall = Hall(Limits(produced_per_second=0.5, produced_burst=5), lookup_at_once=False)
    for id, admission in (("a", CLIENT), ("b", CLIENT), ("ear", ADMISSIONS["tok-devmac"])):
        admitted(hall, id, admission)
    for number in range(20):
        hall.send("ear", "SUBSCRIBE", {"event": str(number), "producer": "TYO-MQ-ALL"})
    for id in ("a", "b", "a"):
        hall.send(id, "PRODUCER", {"name": "build", "id": "build"})
    told = [event for id in hall.sent for event, _ in hall.sent[id] if event != "AUTH_OK"]
    assert 0 < len(told) <= 6
    hall.perform(hall.core.disconnected("ear"))
    assert [len(hall.events(id, "DISCONNECT-build")) for id in ("a", "b")] == [1, 1]


@pytest.mark.parametrize("bad", ["a\nb", "\x1b[2J", "\u202egnp", "\ud800", "a\0"])
def test_no_name_steers_the_screen_that_shows_it(bad: str) -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac", producer="TYO-MQ-ALL", event="done")
    hall.log_in("tool", "tok-tool")
    hall.send("ear", "CONSUMER", {"name": bad})
    hall.subscribe("ear", event=bad)
    for frame in ({"name": bad}, {"name": "build", "id": bad}):
        hall.send("tool", "PRODUCER", frame)
    for frame in ({"event": bad, "from": "build"}, {"event": "done", "from": bad}):
        hall.send("tool", "PRODUCE", {**frame, "message": 1})
    codes = {id: [refusal["code"] for refusal in hall.events(id, "ERROR")] for id in ("ear", "tool")}
    assert codes == {"ear": [-1, -2], "tool": [-1, -2, -2]}
    assert bad not in "".join(event for id in hall.sent for event, _ in hall.sent[id])


@pytest.mark.parametrize(
    "refused",
    [
        {"event": "x", "from": "agent-comms-lie", "method": "broadcast"},
        {"event": "x", "from": "one", "method": "broadcast", "broadcast": "group"},
        {"event": "x", "from": "one", "guaranteed": True},
    ],
)
def test_what_is_refused_takes_none_of_a_producers_names(refused: Any) -> None:
    hall = Hall(Limits(names=1))
    hall.log_in("ear", "tok-devmac", producer="build", event="done")
    hall.log_in("tool", "tok-tool")
    hall.send("tool", "PRODUCE", refused)
    assert hall.events("tool", "ERROR") or hall.events("tool", "AUTH_FAIL")
    hall.send("tool", "PRODUCE", {"event": "done", "from": "build", "message": 1})
    assert len(hall.consumed("ear")) == 1


def test_whoever_hears_any_producer_learns_of_one_that_comes_and_goes() -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac", producer="TYO-MQ-ALL", event="done")
    hall.log_in("tool", "tok-tool")
    hall.send("tool", "PRODUCER", {"name": "build", "id": "b"})
    assert [notice["socket"] for notice in hall.events("tool", "SUBSCRIBE-TO-b")] == ["ear"]
    hall.perform(hall.core.disconnected("tool"))
    assert len(hall.events("ear", "CONNECT-ear")) == len(hall.events("ear", "DISCONNECT-ear")) == 1


@pytest.mark.parametrize("frame", ["PRODUCER", "PRODUCE"])
@pytest.mark.parametrize("name", ["tool2", "TOOL2"])
def test_the_name_of_another_nerve_token_is_never_had(frame: str, name: str) -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac", producer="TYO-MQ-ALL", event="done")
    hall.log_in("tool", "tok-tool")
    hall.send("tool", frame, {"name": name, "event": "done", "from": name, "message": 1})
    (refusal,) = hall.events("tool", "AUTH_FAIL")
    assert refusal["code"] == 403
    assert "another nerve token" in refusal["message"]
    assert hall.consumed("ear") == hall.events("ear", "CONNECT-ear") == []
    hall.log_in("tool2", "tok-tool2")
    hall.send("tool2", "PRODUCE", {"event": "done", "from": name, "message": 1})
    assert len(hall.consumed("ear")) == 1


def test_whose_a_name_is_is_asked_once_and_never_of_ones_own() -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    hall.whose_at_once = False
    for name in ("Tool", "build", "build"):
        hall.send("tool", "PRODUCE", {"event": "done", "from": name, "message": 1})
    assert [asked.name for asked in hall.whose] == ["build"]
    hall.tell_whose()
    hall.send("tool", "PRODUCER", {"name": "Build"})
    assert hall.whose == []
    assert sum(hall.answered.values()) == hall.frames


@pytest.mark.parametrize("frame", ["PRODUCER", "PRODUCE"])
def test_a_name_of_which_nothing_can_be_found_out_is_not_had_and_may_be_tried_again(frame: str) -> None:
    hall = Hall()
    hall.log_in("ear", "tok-devmac", producer="build", event="done")
    hall.log_in("tool", "tok-tool")
    hall.whose_at_once = False
    body = {"name": "build", "event": "done", "from": "build", "message": 1}
    hall.send("tool", frame, body)
    hall.perform(hall.core.answered(hall.whose.pop(), Unkept()))
    assert [told["code"] for told in hall.events("tool", "ERROR")] == [-7]
    assert hall.consumed("ear") == []
    hall.whose_at_once = True
    hall.send("tool", frame, body)
    hall.send("tool", "PRODUCE", body)
    assert len(hall.consumed("ear")) == (2 if frame == "PRODUCE" else 1)


def test_of_two_who_ask_for_a_free_name_at_a_time_one_has_it() -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    hall.log_in("tool2", "tok-tool2")
    hall.whose_at_once = False
    for id in ("tool", "tool2"):
        hall.send(id, "PRODUCER", {"name": "build"})
    hall.tell_whose()
    assert [len(hall.events(id, "AUTH_FAIL")) for id in ("tool", "tool2")] == [0, 1]
