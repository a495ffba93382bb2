"""Where the record listens, and what this machine's box is called."""

from __future__ import annotations

import re

import pytest

from deploy.box import fitting_name
from deploy.listening import CannotListen, is_loopback, listen, url_of

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")


def test_a_free_port_is_found() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of(listener) == f"http://127.0.0.1:{port}"
        assert is_loopback(listener)


def test_every_address_is_reached_through_loopback() -> None:
    with listen("0.0.0.0", 0) as listener:
        assert url_of(listener).startswith("http://127.0.0.1:")
        assert not is_loopback(listener)


def test_a_taken_port_says_what_to_do() -> None:
    with listen("127.0.0.1", 0) as first, pytest.raises(CannotListen, match="--port"):
        listen("127.0.0.1", first.getsockname()[1])


def test_a_host_that_is_none_says_what_to_do() -> None:
    with pytest.raises(CannotListen, match="--host"):
        listen("no such host", 0)


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("work3", "work3"),
        ("Erics-MacBook.local", "erics-macbook"),
        ("WORK_3.example.org", "work_3"),
        ("-ödd name-", "dd-name"),
        ("everyone", "box"),
        ("system", "box"),
        ("", "box"),
        ("日本", "box"),
        ("x" * 80, "x" * 64),
    ],
)
def test_a_host_name_becomes_a_box_name(hostname: str, name: str) -> None:
    assert fitting_name(hostname) == name
    assert NAME.fullmatch(name)
