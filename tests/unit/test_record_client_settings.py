"""Where a workstation finds its record, and whose token goes there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from notifier.inbox import read_rules
from notifier.settings import TOKEN_FILE_BYTES, Settings, SettingsError
from readyroom.waking import Waking, waking

UP = "http://127.0.0.1:7666"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has nothing set up."""
    for name in (
        "URL",
        "TOKEN",
        "TOKEN_FILE",
        "AGENT",
        "DATA_DIR",
        "ADMIN_TOKEN_FILE",
        "SWEEP_SECONDS",
        "WAKE",
        "WAKE_ON",
        "BELL",
    ):
        monkeypatch.delenv(f"READYROOM_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def run_up(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "up.json").write_text(json.dumps({"url": UP}))
    (folder / "box.token").write_text("box-secret\n")
    (folder / "admin.token").write_text("admin-secret\n")


def connect(url: str = "https://record.example") -> None:
    config = Settings.load().config_file
    config.parent.mkdir(parents=True)
    config.write_text(f'url = "{url}"\ntoken_file = "token"\n')
    (config.parent / "token").write_text("config-secret")


def access() -> tuple[str, str]:
    found = Settings.load().access()
    return found.url, found.token.get_secret_value()


def test_nothing_known_says_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"No record is known here.*readyroom up"):
        access()


def test_a_running_up_is_found(machine: Path) -> None:
    run_up(Settings.load().up_dir)
    assert access() == (UP, "box-secret")


def test_one_that_is_stopped_is_not_unknown() -> None:
    folder = Settings.load().up_dir
    run_up(folder)
    (folder / "up.json").unlink()
    for ask in (Settings.load().access, Settings.load().operator_access):
        with pytest.raises(SettingsError, match=rf"is stopped.*{folder}.*Start it again"):
            ask()


def test_another_data_folder_is_found(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_up(machine / "elsewhere")
    monkeypatch.setenv("READYROOM_DATA_DIR", str(machine / "elsewhere"))
    assert access() == (UP, "box-secret")


def test_the_config_file_comes_before_a_running_up() -> None:
    run_up(Settings.load().up_dir)
    connect()
    assert access() == ("https://record.example", "config-secret")


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    connect()
    monkeypatch.setenv("READYROOM_URL", "https://other.example/")
    monkeypatch.setenv("READYROOM_TOKEN", " env-secret\n")
    assert access() == ("https://other.example", "env-secret")


def test_a_token_file_is_read(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "t").write_text("file-secret\n")
    monkeypatch.setenv("READYROOM_URL", "https://other.example")
    monkeypatch.setenv("READYROOM_TOKEN_FILE", str(machine / "t"))
    assert access() == ("https://other.example", "file-secret")


def test_a_token_is_never_handed_to_another_record(monkeypatch: pytest.MonkeyPatch) -> None:
    run_up(Settings.load().up_dir)
    connect()
    monkeypatch.setenv("READYROOM_URL", "https://other.example")
    with pytest.raises(SettingsError, match=r"no token for https://other\.example"):
        access()


@pytest.mark.parametrize(
    "unset", ["", "  ", "${READYROOM_AGENT}", "${READYROOM_AGENT:-}", "${READYROOM_AGENT"]
)
def test_what_programs_send_for_an_unset_handle_means_none(
    unset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READYROOM_AGENT", unset)
    assert Settings.load().agent is None


@pytest.mark.parametrize("bad", ["a b", "a\x1b[2J", "a\u202eb", "a" * 129])
def test_a_handle_that_is_none_is_refused_with_an_example(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_AGENT", bad)
    with pytest.raises(
        SettingsError, match=r"READYROOM_AGENT will not do: a handle looks like work3-agent#1"
    ):
        Settings.load()


@pytest.mark.parametrize("bad", ["ftp://x", "x", "http://", "http://h?token=1", "http://h/#x"])
def test_a_url_that_is_none_is_refused(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", bad)
    monkeypatch.setenv("READYROOM_TOKEN", "t")
    with pytest.raises(SettingsError, match="no URL of a record"):
        access()


def test_a_password_in_the_url_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", "http://user:hunter2@h")
    with pytest.raises(SettingsError) as refused:
        access()
    assert "hunter2" not in str(refused.value)


def test_a_bad_token_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", UP)
    monkeypatch.setenv("READYROOM_TOKEN", "two words")
    with pytest.raises(SettingsError, match="READYROOM_TOKEN holds no token") as refused:
        access()
    assert "two words" not in str(refused.value)


def test_a_missing_token_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", UP)
    monkeypatch.setenv("READYROOM_TOKEN_FILE", "/nowhere/token")
    with pytest.raises(SettingsError, match="/nowhere/token is not there"):
        access()


@pytest.mark.parametrize(
    "torn",
    ["url = ", 'url = "https://x"', 'token_file = "x"', "url = 1", 'wake = "loudly"', "bell = 1", "woke = 1"],
)
def test_a_torn_config_file_is_named(torn: str) -> None:
    config = Settings.load().config_file
    config.parent.mkdir(parents=True)
    config.write_text(torn)
    for read in (access, lambda: waking(Settings.load())):
        with pytest.raises(SettingsError, match=r"config\.toml is not readable.*it holds `url` with"):
            read()


def configure(text: str) -> None:
    config = Settings.load().config_file
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)


def test_how_to_wake_may_stand_in_the_config_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    configure('wake = "keystrokes"\nwake_on = "addressed, api=all"\nbell = true\n')
    monkeypatch.setenv("READYROOM_BELL", " ")
    assert waking(Settings.load()) == Waking("keystrokes", read_rules("addressed, api=all"), bell=True)
    with pytest.raises(SettingsError, match="No record is known here"):
        access()


def test_the_environment_comes_before_the_config_file(monkeypatch: pytest.MonkeyPatch) -> None:
    configure('wake = "keystrokes"\nwake_on = "none"\nbell = true\n')
    for name, value in {"WAKE": "native", "WAKE_ON": "all", "BELL": "0"}.items():
        monkeypatch.setenv(f"READYROOM_{name}", value)
    assert waking(Settings.load()) == Waking("native", read_rules("all"), bell=False)


def test_nothing_said_of_waking_is_all_of_it() -> None:
    assert waking(Settings.load()) == Waking(None, read_rules("all"), bell=False)


def test_rules_that_nobody_can_read_are_named_by_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    configure('wake_on = "sometimes"')
    with pytest.raises(SettingsError, match=r"`wake_on` of .*config\.toml will not do: 'sometimes'"):
        waking(Settings.load())
    monkeypatch.setenv("READYROOM_WAKE_ON", "api=sometimes")
    with pytest.raises(SettingsError, match="READYROOM_WAKE_ON will not do: 'api=sometimes'"):
        waking(Settings.load())


@pytest.mark.parametrize("torn", ["", "[]", "{}"])
def test_a_torn_up_file_is_named(torn: str) -> None:
    folder = Settings.load().up_dir
    folder.mkdir(parents=True)
    (folder / "up.json").write_text(torn)
    with pytest.raises(SettingsError, match=r"up\.json is not readable"):
        access()


def test_the_operator_of_a_running_up_is_known() -> None:
    run_up(Settings.load().up_dir)
    found = Settings.load().operator_access()
    assert (found.url, found.token.get_secret_value()) == (UP, "admin-secret")


def test_the_operators_token_is_never_handed_to_another_record(monkeypatch: pytest.MonkeyPatch) -> None:
    run_up(Settings.load().up_dir)
    monkeypatch.setenv("READYROOM_URL", "https://other.example")
    with pytest.raises(SettingsError, match="READYROOM_ADMIN_TOKEN_FILE"):
        Settings.load().operator_access()


def test_secrets_do_not_show_in_a_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", UP)
    monkeypatch.setenv("READYROOM_TOKEN", "env-secret")
    settings = Settings.load()
    assert "env-secret" not in repr(settings) + repr(settings.access())


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://record:port", "http://record:99999", "http://record:0"]
)
def test_a_url_that_cannot_be_taken_apart_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", url)
    monkeypatch.setenv("READYROOM_TOKEN", "secret")
    with pytest.raises(SettingsError, match="is no URL of a record"):
        access()


@pytest.mark.parametrize(
    "url",
    ["http://203.0.113.1:80", "http://8.8.8.8", "http://[2606:4700::1]:7666", "http://[::ffff:8.8.8.8]"],
)
def test_a_token_does_not_go_in_clear_to_a_public_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", url)
    monkeypatch.setenv("READYROOM_TOKEN", "secret")
    with pytest.raises(SettingsError, match="in clear to a public address"):
        access()
    monkeypatch.setenv("READYROOM_ADMIN_TOKEN_FILE", "/dev/null")
    with pytest.raises(SettingsError, match="in clear to a public address"):
        Settings.load().operator_access()


@pytest.mark.parametrize(
    "url",
    [
        *("https://203.0.113.1", "http://record.example:7666", "http://localhost:7666", "http://127.0.0.5"),
        *(
            "http://[::1]:7666",
            "http://10.1.2.3",
            "http://172.31.0.1",
            "http://192.168.1.1",
            "http://100.64.9.9",
        ),
        *("http://[fd00::1]", "http://[::ffff:10.0.0.1]", "http://169.254.1.1"),
    ],
)
def test_a_token_goes_where_it_is_safe_and_to_names(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", url)
    monkeypatch.setenv("READYROOM_TOKEN", "secret")
    assert access() == (url, "secret")


def test_a_token_file_that_never_ends_is_refused(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READYROOM_URL", UP)
    os.mkfifo(machine / "pipe")
    (machine / "long").write_text("x" * (TOKEN_FILE_BYTES + 1))
    for path in ("/dev/zero", machine, machine / "pipe", machine / "long"):
        monkeypatch.setenv("READYROOM_TOKEN_FILE", str(path))
        monkeypatch.setenv("READYROOM_ADMIN_TOKEN_FILE", str(path))
        for ask in (Settings.load().access, Settings.load().operator_access):
            with pytest.raises(SettingsError, match="a regular file of at most 4096 bytes"):
                ask()
