"""The protocol core does what the original broker was recorded to do, but for differences listed here."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

import pytest

from broker_bridge.actions import (
    Acknowledge,
    Action,
    Answer,
    Ask,
    Attach,
    Detach,
    Emit,
    Find,
    HangUp,
    Keep,
    Open,
    Whose,
)
from broker_bridge.limits import Limits
from broker_bridge.memory_store import MemoryStore
from broker_bridge.nerve import Admission
from broker_bridge.protocol import Protocol
from broker_bridge.queues import Batch
from broker_bridge.sockets import Sockets
from tests.contract.storing import answer, now

RECORDINGS = Path(__file__).parent / "recordings"
TOKENS = {
    "tok-a-both": Admission("team-a", "a", "both", "a", "client"),
    "tok-a-prod": Admission("team-a", "a", "producer", "a", "client"),
    "tok-a-cons": Admission("team-a", "a", "consumer", "a", "client"),
    "tok-b-both": Admission("team-b", "b", "both", "b", "client"),
}

ONE_AFTER_ANOTHER: dict[str, dict[str, str]] = {
    "08-durable-without-ack": {"C2": "nqDIf7imSk1PCsRTAABM"},
    "09-durable-ack-retry-dlq": {"C1": "nqDIf7imSk1PCsRTAABM"},
    "10-unacked-redelivery-after-reconnect": {"C1": "nqDIf7imSk1PCsRTAABM", "C2": "nyinmxjum_BtmwfSAABR"},
    "11-guaranteed-messages": {"C2": "nqDIf7imSk1PCsRTAABM"},
}
"""Recordings of one run, with the connections in them that were there before."""

AUTH_OFF = {"18-crash-ack-without-durable", "19-large-message-chunked-to-consumer", "21-rate-limited"}
"""Recorded from a broker that asked nobody for a token."""

DIFFERENT: dict[str, dict[str, set[str]]] = {
    "02-authentication": {
        "only a token admits, no realm, role or key beside it": {
            "38 C9 AUTH_OK",
            "48 C11 AUTH_OK",
            "52 C12 AUTH_OK",
            "56 C13 AUTH_OK",
        },
        "nobody who is not logged in may do or hear anything, and is told so": {
            "93 C18 CONSUME-tyo-mq-all-msg",
            "more C4 AUTH_FAIL",
            "more C18 AUTH_FAIL",
            "more C22 AUTH_FAIL",
        },
        "nobody hears every realm": {"103 C21 AUTH_OK"},
    },
    "03-basic-publish-subscribe": {
        "a message without a producer's name is refused, and told so (which shifts the next notice)": {
            "42 C1 SUBSCRIBE-TO-DuBalanczNfkAWIQAAAw",
            "more C1 SUBSCRIBE-TO-DuBalanczNfkAWIQAAAw",
        },
    },
    "04-any-producer-and-unsubscribe": {
        "UNSUBSCRIBE works": {"34 C3 CONSUME-other-comms-msg", "35 C3 CONSUME-tyo-mq-all-msg"},
    },
    "05-case-and-scope-all": {
        "case never parts two producers (message 3), so a delivery comes before the next": {
            "21 C3 CONSUME-a-b-c",
        },
        "a dash never joins two pairs: a + b-c is not a-b + c": {"21 C3 CONSUME-a-b-c"},
        "scope all hears all of a producer's events, under the name that clients listen for": {
            "31 C4 CONSUME-other-comms-tm-all",
            "32 C4 DISCONNECT-c-all",
        },
        "a producer's notices are named after its own connection, never after an earlier one": {
            "28 C2 SUBSCRIBE-TO-bV8oLlC6VHwv0qYnAAA0",
        },
        "every name of a connection is let go of when it closes": {
            "more C3 DISCONNECT-c-case",
            "more C4 DISCONNECT-c-all",
        },
    },
    "06-topics": {
        "every name of a connection is let go of when it closes": {"more C2 DISCONNECT-c-topic"},
    },
    "08-durable-without-ack": {
        "what was kept before the recording begins": {
            "8 C1 CONSUME-other-comms-msg",
            "9 C1 CONSUME-other-comms-msg",
            "10 C1 CONSUME-other-comms-msg",
            "11 C1 CONSUME-other-comms-msg",
            "12 C1 CONSUME-other-comms-msg",
        },
        "a subscription ends with its connection; its queue stays": {
            "5 C2 CONNECT-nqDIf7imSk1PCsRTAABM",
            "23 C2 CONNECT-nqDIf7imSk1PCsRTAABM",
        },
        "nothing comes before SUBSCRIBE, and then all of it in order": {
            "25 C3 CONSUME-other-comms-msg",
            "more C3 CONSUME-other-comms-msg",
        },
    },
    "09-durable-ack-retry-dlq": {
        "a consumer leaves that the recording does not hold": {"0 C1 DISCONNECT-nqDIf7imSk1PCsRTAABM"},
        "a subscription ends with its connection; its queue stays": {"6 C1 CONNECT-nqDIf7imSk1PCsRTAABM"},
    },
    "10-unacked-redelivery-after-reconnect": {
        "a repeat is marked after a reconnect, too: it is the second attempt": {
            "11 C3 CONSUME-other-comms-msg"
        },
        "a subscription ends with its connection; its queue stays": {
            "8 C1 CONNECT-nqDIf7imSk1PCsRTAABM",
            "22 C1 CONNECT-nqDIf7imSk1PCsRTAABM",
        },
    },
    "11-guaranteed-messages": {
        "a subscription ends with its connection; its queue stays": {
            "17 C2 CONNECT-nqDIf7imSk1PCsRTAABM",
            "42 C2 CONNECT-nqDIf7imSk1PCsRTAABM",
        },
        "a consumer of the recording before is there still": {
            "more b9Vd-pcHIlnM8xbBAABU CONSUME-other-comms-msg",
        },
    },
    "12-duplicate-consumer": {
        "the newcomer of the same holder takes the name over": {
            "11 C2 ERROR",
            "12 C2 DISCONNECT",
            "more C1 DISCONNECT",
            "more C1 ERROR",
        },
    },
    "13-same-name-producers-subscribing": {
        "connections of one holder share a producer's name, and no ERROR says so (which shifts a notice)": {
            "12 C1 ERROR",
            "14 C1 CONNECT-U3WreVt1Qa645D01AABc",
        },
        "what a connection subscribes to is its own, whoever had the name before: both hear (all shifts)": {
            "16 C2 SUBSCRIBE-TO-49JpHmjf54LY9Rm0AABd",
            "18 C1 CONSUME-other-comms-msg",
            "20 C2 other-comms-TM-ALL-CONSUME",
            "21 C1 other-comms-TM-ALL-CONSUME",
            "22 C2 CONSUME-msg",
            "23 C1 CONSUME-msg",
            "24 C2 CONSUME-other-comms-msg",
            "25 C2 CONSUME-tyo-mq-all-msg",
            "26 C2 CONSUME-other-comms-TM-ALL",
            "27 C1 CONSUME-other-comms-msg",
            "28 C1 CONSUME-tyo-mq-all-msg",
            "29 C1 CONSUME-other-comms-TM-ALL",
            "30 C2 DISCONNECT-49JpHmjf54LY9Rm0AABd",
            "33 C2 SUBSCRIBE-TO-49JpHmjf54LY9Rm0AABd",
            "35 C2 CONSUME-other-comms-msg",
            "37 C2 other-comms-TM-ALL-CONSUME",
            "38 C2 CONSUME-msg",
            "39 C2 CONSUME-other-comms-msg",
            "40 C2 CONSUME-tyo-mq-all-msg",
            "41 C2 CONSUME-other-comms-TM-ALL",
            "more C1 CONSUME-other-comms-TM-ALL",
            "more C2 CONSUME-other-comms-TM-ALL",
            "more C2 CONSUME-other-comms-msg",
            "more C2 CONSUME-tyo-mq-all-msg",
        },
    },
    "14-anonymous-and-bad-registration": {
        "nobody who is not logged in may do anything, and is told so": {
            "20 C4 ERROR",
            "22 C4 ERROR",
            "24 C4 ERROR",
            "more C3 AUTH_FAIL",
            "more C4 AUTH_FAIL",
        },
    },
    "15-realm-isolation-and-admin-realm": {
        "nobody hears every realm": {
            "27 C5 AUTH_OK",
            "32 C5 CONSUME-tyo-mq-all-msg",
            "35 C5 CONSUME-tyo-mq-all-msg",
            "37 C5 CONSUME-tyo-mq-all-msg",
        },
    },
    "16-presence-notices": {
        "a subscription ends with its connection; clients subscribe again": {
            "27 C3 CONNECT-Cno7_DzAzEYOgVsOAABs",
            "29 C4 CONSUME-pp-msg",
        },
    },
    "17-misc-events": {
        "the key directory, tickets and sealed senders are not offered, and say so": {
            "11 C2 ACK",
            "13 C2 ACK",
            "15 C2 ACK",
            "17 C2 REMOTE_TICKET",
            "18 C2 ACK",
            "20 C2 ACK",
        },
    },
    "24-durable-group": {
        "a subscription ends with its connection (which shifts the next notice); its queue stays": {
            "38 C1 CONNECT-FOA4pbesM1J53kswAAAF",
            "50 C1 CONNECT-FOA4pbesM1J53kswAAAF",
            "51 C1 SUBSCRIBE-TO-FOA4pbesM1J53kswAAAF",
        },
    },
    "18-crash-ack-without-durable": {
        "ack without durable is a plain delivery; it ended the original": {"more C1 CONSUME-other-comms-msg"},
    },
    "19-large-message-chunked-to-consumer": {
        "the newcomer takes the name over (that the first one left is not in the recording)": {
            "more C1 DISCONNECT",
            "more C1 ERROR",
        },
    },
    "21-rate-limited": {
        "the limits are ours, and nothing in this recording goes beyond them": {
            "32 C2 RATE_LIMITED",
            "45 C1 RATE_LIMITED",
            "52 C5 RATE_LIMITED",
            "53 C5 DISCONNECT",
            "54 C2 DISCONNECT-vYyVgydwa5420K_HAAAB",
            "more C1 CONSUME-other-comms-msg",
            "more C2 DISCONNECT-vYyVgydwa5420K_HAAAB",
            "more C2 SUBSCRIBE-TO-vYyVgydwa5420K_HAAAB",
        },
    },
    "23-names-are-not-owned": {
        "what a connection subscribes to comes to it alone, whatever consumer it names": {
            "15 C1 CONSUME-other-comms-msg",
            "23 C2 CONSUME-other-comms-msg",
            "more C2 CONSUME-other-comms-msg",
        },
        "a producer's notices are named after its own connection, never after an earlier one": {
            "17 C3 SUBSCRIBE-TO-OazCkmz7n7H55M9KAAAA",
            "18 C3 DISCONNECT-OazCkmz7n7H55M9KAAAA",
            "22 C3 SUBSCRIBE-TO-OazCkmz7n7H55M9KAAAA",
            "24 C3 DISCONNECT-OazCkmz7n7H55M9KAAAA",
        },
    },
}
"""Recording -> what we do otherwise -> the packets in which it shows. docs/reference/nerve.md tells users."""


def known(recording: Path) -> set[str]:
    return set().union(*DIFFERENT.get(recording.stem, {}).values())


@pytest.mark.parametrize(
    "recording",
    sorted(path for path in RECORDINGS.glob("*.json") if path.stem not in ONE_AFTER_ANOTHER),
    ids=lambda path: path.stem,
)
def test_replay(recording: Path) -> None:
    assert Replay().run(recording) == known(recording)


def test_replay_one_after_another() -> None:
    replay = Replay()
    recordings = [RECORDINGS / f"{stem}.json" for stem in ONE_AFTER_ANOTHER]
    assert {each.stem: replay.run(each) for each in recordings} == {
        each.stem: known(each) for each in recordings
    }


class Replay:
    """Feeds the clients' packets of a recording to a core of ours and compares what comes back."""

    def __init__(self) -> None:
        self._core = Protocol(Limits(), keeps=True)
        self._now = 0.0
        self._frames = 0
        self._store = MemoryStore(lambda: self._now)
        self._pumps: dict[int, Attach] = {}
        self._message_ids: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._closed: set[str] = set()
        self._out: dict[str, deque[Any]] = defaultdict(deque)
        self._known: set[str] = set()
        self._auth_off = False

    def run(self, recording: Path) -> set[str]:
        """What differs, as `<packet number or "more"> <connection> <event>`."""
        self._auth_off = recording.stem in AUTH_OFF
        text = (
            recording.read_text().replace("agent-comms", "other-comms").replace("Agent-Comms", "Other-Comms")
        )
        differences = set()
        self._ids = {}
        for name, id in ONE_AFTER_ANOTHER.get(recording.stem, {}).items():
            self._ids[name] = id
            if id not in self._known:
                self._join_late(id)
        for number, packet in enumerate(json.loads(text)["packets"]):
            if packet.get("sio") not in ("CONNECT", "DISCONNECT", "EVENT", "ACK"):
                continue
            if packet["dir"] == "client->broker":
                self._to_broker(packet)
            elif not self._from_broker(packet):
                differences.add(f"{number} {packet['conn']} {packet.get('event', packet['sio'])}")
        names = {id: name for name, id in self._ids.items()}
        more = {f"more {names.get(id, id)} {got[0]}" for id, out in self._out.items() for got in out}
        self._out.clear()
        return differences | more

    def _to_broker(self, packet: dict[str, Any]) -> None:
        id = self._ids.get(packet["conn"])
        if id is None:
            return
        if packet["sio"] == "DISCONNECT":
            self._close(id)
        elif packet["sio"] == "EVENT":
            event, args = _large(packet["raw"]) if "raw" in packet else (packet["event"], packet["args"])
            ref = (id, packet.get("ack_id"))
            payload = self._ours(args[0]) if args else None
            self._frames += 1
            self._perform(self._core.frame(id, event, payload, now=self._frames, ref=ref))

    def _from_broker(self, packet: dict[str, Any]) -> bool:
        """Whether ours sent the same."""
        if packet["sio"] == "CONNECT":
            self._ids[packet["conn"]] = packet["data"]["sid"]
            self._known.add(packet["data"]["sid"])
            self._now += 2
            self._core.connected(packet["data"]["sid"], now=0)
            if self._auth_off:
                self._log_in(packet["data"]["sid"])
            return True
        if packet["conn"] not in self._ids:
            return True  # a connection of the recording before
        if not self._out[self._ids[packet["conn"]]]:
            self._let_time_pass()
        if "raw" in packet:
            return _shape(_text(*self._out[self._ids[packet["conn"]]].popleft())) == _shape(packet["raw"])
        event, payload = packet.get("event", packet["sio"]), (packet.get("args") or [None])[0]
        if event.startswith("DISCONNECT-"):
            self._close(payload["socket"])  # the recording shows a peer's end by this notice alone
        out = self._out[self._ids[packet["conn"]]]
        if not out:
            return False
        got = out.popleft()
        if (
            isinstance(payload, dict)
            and isinstance(got[1], dict)
            and "msgId" in payload
            and "msgId" in got[1]
        ):
            self._message_ids[payload["msgId"]] = got[1]["msgId"]
        return _plain(got) == _plain((event, self._ours(payload)))

    def _ours(self, payload: Any) -> Any:
        """The payload with our ids of messages in place of the recorded ones."""
        text = json.dumps(payload)
        for recorded, id in self._message_ids.items():
            text = text.replace(recorded, id)
        return json.loads(text)

    def _let_time_pass(self) -> None:
        """Until a message comes again, or what waits is over."""
        for queue in list(self._pumps):
            batch = self._take(queue)
            if batch.seconds is not None and not batch.messages:
                self._now += batch.seconds
                self._take(queue)

    def _take(self, queue: int) -> Batch:
        at = self._pumps[queue]
        batch: Batch = now(self._store.take(at.realm, queue, connection=at.connection))
        self._perform(list(self._core.deliver(at.connection, queue, batch.messages)))
        if not at.acknowledged:
            now(self._store.drop(at.realm, queue, [each.id for each in batch.messages]))
        return batch

    def _join_late(self, id: str) -> None:
        """A producer that was there before the recording began."""
        self._known.add(id)
        self._core.connected(id, now=0)
        self._log_in(id)
        (asked,) = self._core.frame(id, "PRODUCER", {"name": "other-comms"}, now=0, ref=(id, None))
        assert isinstance(asked, Whose)
        self._core.answered(asked, False)

    def _log_in(self, id: str) -> None:
        self._core.frame(id, "AUTHENTICATION", {"token": "tok-a-both"}, now=0, ref=(id, None))
        self._core.admitted(id, TOKENS["tok-a-both"])

    def _close(self, id: str) -> None:
        if id not in self._closed:
            self._closed.add(id)
            self._perform(self._core.disconnected(id))

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Emit(to, event, payload):
                    for packet in Sockets.encode(event, payload):
                        self._out[to].append(tuple(json.loads(packet.data[1:])))
                case HangUp(connection):
                    self._out[connection].append(("DISCONNECT", None))
                    self._close(connection)
                case Ask(connection, credential):
                    self._perform(self._core.admitted(connection, TOKENS.get(credential.value)))
                case Whose():
                    self._perform(self._core.answered(action, False))
                case Open() | Find() | Keep() | Acknowledge():
                    self._perform(self._core.answered(action, answer(self._store, action)))
                    for id in self._pumps.keys() & set(action.queues if isinstance(action, Keep) else ()):
                        self._take(id)
                case Attach():
                    self._pumps[action.queue] = action
                    self._take(action.queue)
                case Detach(connection, id):
                    if id in self._pumps and self._pumps[id].connection == connection:
                        del self._pumps[id]
                case Answer((id, ack_id), ack) if ack is not None and ack_id is not None:
                    self._out[id].append(("ACK", ack))


def _large(raw: str) -> tuple[str, list[Any]]:
    """A large frame, of which the recording holds the beginning and the length."""
    beginning, length = raw.split("\u2026<")
    end = '","from":"other-comms"}]'
    whole = beginning.ljust(int(length.removesuffix(" chars>")) - len(end), "x") + end
    event, *args = json.loads(whole[1:])
    return event, args


def _shape(text: str) -> tuple[object, ...]:
    """What can be compared of a large packet: its length, or which piece of how many it is."""
    event = text.split('"')[1]
    piece = re.search(r'"event":"([^"]+)","index":(\d+),"total":(\d+)', text)
    length = text.split("\u2026<")[1].removesuffix(" chars>") if "\u2026<" in text else str(len(text))
    return (event, *piece.groups()) if piece else (event, length)


def _text(event: str, payload: Any) -> str:
    return f"2{json.dumps([event, payload], separators=(',', ':'))}"


def _plain(packet: tuple[str, Any]) -> tuple[str, Any]:
    """Without our mark in AUTH_OK, the time of a PONG, and the wording of a refusal: its code counts."""
    event, payload = packet
    if isinstance(payload, str) and '"pong"' in payload:
        payload = json.loads(payload)
    if event in ("AUTH_FAIL", "ERROR") and isinstance(payload, dict):
        payload = {"code": payload["code"]}
    if isinstance(payload, dict):
        payload = {key: value for key, value in payload.items() if key not in ("server", "timestamp")}
    return event, payload
