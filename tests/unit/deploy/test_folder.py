"""The data folder: private files, whole or absent, and one holder at a time."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from deploy.folder import DataFolder, FolderTaken
from deploy.logfile import MAX_BYTES, open_log


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    made = DataFolder(tmp_path / "data")
    made.make()
    return made


def test_the_operators_token_is_made_once_and_private(folder: DataFolder) -> None:
    token = folder.admin_token()
    assert token.startswith("rra_")
    assert len(token) > 40
    assert folder.admin_token() == token
    assert mode(folder.admin_token_file) == 0o600


def test_an_empty_token_file_counts_as_none(folder: DataFolder) -> None:
    folder.admin_token_file.write_text("\n")
    assert folder.admin_token().startswith("rra_")


def test_up_json_is_private_and_goes_with_its_holder(folder: DataFolder) -> None:
    folder.announce(url="http://127.0.0.1:7666", pid=1)
    assert mode(folder.up_file) == 0o600
    assert json.loads(folder.up_file.read_text()) == {"url": "http://127.0.0.1:7666", "pid": 1}
    with folder.held():
        assert not folder.up_file.exists()


def test_a_file_is_replaced_in_one_step(folder: DataFolder) -> None:
    folder.keep(folder.box_token_file, "first")
    with folder.box_token_file.open() as reader:
        folder.keep(folder.box_token_file, "second")
        assert reader.read() == "first\n"
    assert folder.read(folder.box_token_file) == "second"
    assert sorted(os.listdir(folder.path)) == ["box.token"]


def test_a_second_holder_is_told_who_the_first_is(folder: DataFolder) -> None:
    with folder.held(), pytest.raises(FolderTaken, match=f"process {os.getpid()}"), folder.held():
        pass
    with folder.held():
        pass


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    DataFolder(tmp_path).make()
    assert mode(tmp_path) == 0o750


def test_a_new_folder_cannot_be_listed_by_others(folder: DataFolder) -> None:
    assert mode(folder.path) & 0o066 == 0


def test_a_long_log_is_turned_over(tmp_path: Path) -> None:
    path = tmp_path / "record.log"
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    with open_log(path) as log:
        log.write(b"new\n")
    assert path.read_bytes() == b"new\n"
    assert mode(path) == 0o600
    assert (tmp_path / "record.log.1").stat().st_size == MAX_BYTES + 1


def test_the_lock_is_private_also_when_an_earlier_version_made_it(folder: DataFolder) -> None:
    lock = folder.path / "lock"
    lock.touch()
    lock.chmod(0o644)
    with folder.held():
        assert mode(lock) == 0o600
