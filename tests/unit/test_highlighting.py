"""The highlight marks what a search has found, in code and in languages without blanks too."""

from __future__ import annotations

import time

import pytest

from api.services.highlighting import highlighted, sought_words

LONG = "word " * 40


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("poll", "see poll_convs and pollConvs", "see ⟦poll⟧_convs and ⟦poll⟧Convs"),
        ("convs", "see poll_convs and pollConvs", "see poll_⟦convs⟧ and poll⟦Convs⟧"),
        ("poll convs", "poll_convs, pollConvs", "⟦poll⟧_⟦convs⟧, ⟦pollConvs⟧"),
        ("poll_convs", "pollConvs is poll_convs", "⟦pollConvs⟧ is ⟦poll⟧_⟦convs⟧"),
        ("pollConvs", "POLLCONVS pollconvs", "⟦POLLCONVS⟧ ⟦pollconvs⟧"),
        ("server", "HTTPServer2 and HTTPServer", "HTTPServer2 and HTTP⟦Server⟧"),
        ("http", "an HTTPServer", "an ⟦HTTP⟧Server"),
        ("user", "users use user-name", "users use ⟦user⟧-name"),
        ("größe", "Die Größe, die GRÖSSE", "Die ⟦Größe⟧, die GRÖSSE"),
        ("ÜBERTRAGUNG", "die Übertragung", "die ⟦Übertragung⟧"),
        ("déjà élève", "Déjà l'élève", "⟦Déjà⟧ l'⟦élève⟧"),
        ("проверка", "Проверка связи", "⟦Проверка⟧ связи"),
        ("漢字", "この漢字は", "この⟦漢字⟧は"),
        ("テスト", "漢字テスト", "漢字⟦テスト⟧"),
        ("검색", "검색어", "⟦검색⟧어"),
        ("nothing", "other words", "other words"),
        ("...", "other words", "other words"),
        ("x", "", ""),
    ],
)
def test_what_matched_is_marked(query: str, text: str, shown: str) -> None:
    assert highlighted(text, sought_words(query)) == shown


def test_two_parts_of_a_long_text_are_shown() -> None:
    shown = highlighted(f"{LONG}first here {LONG}second here {LONG}first again", sought_words("first second"))
    assert shown.count("⟦") == 2
    assert "⟦first⟧ here" in shown
    assert "⟦second⟧ here" in shown
    assert (shown[0], shown[-1], shown.count("…")) == ("…", "…", 3)
    assert all(word in ("word", "⟦first⟧", "⟦second⟧", "here", "…") for word in shown.split())
    assert highlighted(LONG, sought_words("x")).endswith("word …")


@pytest.mark.parametrize(
    "text", ["a" * 65536, "aB" * 32768, "漢" * 21845, "a " * 32768, "⟦" * 21845, "x" * 65535 + "y"]
)
@pytest.mark.parametrize("query", ["a", "y", "漢", " ".join(f"w{n}" for n in range(250)), "b" * 1000])
def test_no_text_and_no_query_takes_long(text: str, query: str) -> None:
    began = time.process_time()
    assert len(highlighted(text, sought_words(query))) < 3_000
    assert time.process_time() - began < 1.0
