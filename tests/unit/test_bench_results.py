"""A clone without results is no obstacle."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import results


def test_without_a_folder_there_are_no_committed_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    assert results.committed("say") is None
    results.keep("say", {"scenario": "say"})
    assert (tmp_path / "results" / "say.json").exists()
