"""Search over what the caller may read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.running import Party, Running
from tests.http.test_rooms import said

SAID = [
    "The getUserName of api.foo_bar breaks HTTPServer",
    "Die Größe der Übertragung ändert sich",
    "漢字テストの結果です",
    "Проверка связи прошла",
    "user user user name: everything about the user",
]


@pytest.fixture
async def pair(record: Running) -> tuple[Party, Party]:
    """A speaker and a reader on two boxes, in room `api`, where SAID was said."""
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box, "reach"), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    for body in SAID:
        await said(speaker, "api", body)
    return speaker, reader


async def found(party: Party, **query: Any) -> list[str]:
    reply = await party.call("GET", "/v1/search", query=query)
    assert reply.status == 200, reply
    return [message["body"] for message in reply.body["messages"]]


FOUND = [
    ("getUserName", [0]),
    ("username", []),
    ("user name", [4, 0]),
    ("foo_bar", [0]),
    ("http server", [0]),
    ("HTTPServer", [0]),
    ("größe", [1]),
    ("ÜBERTRAGUNG", [1]),
    ("漢字", [2]),
    ("テスト", [2]),
    ("проверка", [3]),
    ("привет", []),
    ("связи проверка", [3]),
    ("結果", [2]),
    ("foo bar", [0]),
    ("name", [4, 0]),
    ("...", []),
    ("nothing here", []),
    ("'; DROP TABLE conv_messages; --", []),
    ("a & | ! <-> :*", []),
]


async def test_words_are_found_best_first(pair: tuple[Party, Party], subtests: pytest.Subtests) -> None:
    for words, which in FOUND:
        with subtests.test(words):
            assert await found(pair[1], q=words) == [SAID[n] for n in which]


async def test_what_was_found_is_highlighted_and_ranked(pair: tuple[Party, Party]) -> None:
    reply = await pair[1].call("GET", "/v1/search", query={"q": "user"})
    first, second = reply.body["messages"]
    assert first["rank"] > second["rank"] > 0
    assert "⟦user⟧" in first["highlight"]
    assert first["text"].startswith("[message from work3-agent-reach#1] ")


async def test_parts_of_identifiers_and_languages_without_blanks_are_highlighted(
    pair: tuple[Party, Party],
) -> None:
    for words, marked in (("foo", "api.⟦foo⟧_bar"), ("name", "getUser⟦Name⟧"), ("テスト", "漢字⟦テスト⟧の")):
        reply = await pair[1].call("GET", "/v1/search", query={"q": words})
        assert marked in reply.body["messages"][-1]["highlight"]
    payload = {"summary": "about poll_convs", "content": "long"}
    await pair[0].post("/v1/rooms/api/messages", {"payload": payload})
    reply = await pair[1].call("GET", "/v1/search", query={"q": "poll"})
    assert [message["highlight"] for message in reply.body["messages"]] == ["about ⟦poll⟧_convs"]


async def test_what_says_it_more_closely_comes_first_and_of_equals_the_newest(
    pair: tuple[Party, Party],
) -> None:
    speaker, reader = pair
    apart, close = "red " + "and " * 30 + "apple", "a red apple"
    for body in (apart, close, close, "red", "apple"):
        await said(speaker, "api", body)
    reply = await reader.call("GET", "/v1/search", query={"q": "red apple"})
    shown = reply.body["messages"]
    assert [message["body"] for message in shown] == [close, close, apart]
    assert shown[0]["id"] > shown[1]["id"]
    assert shown[0]["rank"] == shown[1]["rank"] > shown[2]["rank"] > 0


async def test_the_answer_can_be_narrowed_and_comes_in_pages(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(reader, "api", "the user again", type="task.result")
    assert await found(reader, q="user", sender=reader.agent) == ["the user again"]
    assert await found(reader, q="user", type="task.result") == ["the user again"]
    assert await found(reader, q="user", room="elsewhere") == []
    assert await found(reader, q="user", since="2999-01-01T00:00:00Z") == []
    page = (await speaker.call("GET", "/v1/search", query={"q": "user", "limit": "2"})).body
    rest = (
        await speaker.call(
            "GET", "/v1/search", query={"q": "user", "limit": "2", "cursor": page["next_cursor"]}
        )
    ).body
    assert len(page["messages"]) == 2
    assert len(rest["messages"]) == 1
    assert rest["next_cursor"] is None


async def test_nobody_finds_what_is_not_theirs_to_read(record: Running, pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    zoo = await record.box("zoo")
    stranger = await record.session(zoo)
    assert await found(stranger, q="user") == []
    await speaker.post("/v1/messages", {"to": reader.agent, "body": "secret user"})
    assert await found(stranger, q="secret") == []
    assert await found(reader, q="secret") == ["secret user"]
    assert await found(speaker, q="secret") == ["secret user"]
    await reader.post("/v1/rooms/api/leave")
    assert await found(reader, q="user") == ["secret user"]


async def test_a_bad_search_is_refused(pair: tuple[Party, Party], subtests: pytest.Subtests) -> None:
    queries: list[dict[str, str]] = [
        {},
        {"q": ""},
        {"q": "x", "limit": "0"},
        {"q": "x", "since": "yesterday"},
    ]
    for query in queries:
        with subtests.test(query=query):
            assert (await pair[1].call("GET", "/v1/search", query=query)).status == 422


async def test_a_filter_that_nothing_can_match_is_refused(record: Running) -> None:
    party = await record.session(await record.box("work3"))
    for field in ("q", "room", "sender", "type"):
        reply = await party.get("/v1/search", query={"q": "x", field: "a\0b"})
        assert (reply.status, reply.code) == (422, "invalid")
