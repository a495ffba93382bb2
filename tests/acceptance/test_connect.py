"""`readyroom connect` against a real `readyroom up`: what it keeps, what it refuses; no code is wasted."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tests.acceptance.test_cli import Shell, clean, operator, up
from tests.contract.test_notifier_unit import SYSTEMCTL, UNIT

__all__ = ["operator", "up"]

NEW = Path(".config", "readyroom")


@pytest.fixture
def url(up: Path) -> str:
    return str(json.loads((up / "up.json").read_text())["url"])


@pytest.fixture
def user(tmp_path: Path) -> Shell:
    """Somebody of whom this machine knows nothing."""
    home = tmp_path / "home"
    home.mkdir()
    return Shell({**clean(), "HOME": str(home), "READYROOM_RUNTIME_DIR": str(tmp_path / "run")})


@pytest.fixture
def folder(user: Shell) -> Path:
    return Path(user.env["HOME"]) / NEW


@pytest.fixture
def code(operator: Shell, request: pytest.FixtureRequest) -> str:
    """A code for a box of this test's own."""
    number = abs(hash(request.node.name)) % 10**9
    return str(operator.json("admin", "invite", f"box{number}")["code"])


def is_new(folder: Path) -> bool:
    return not folder.exists() or not any(folder.iterdir())


def test_a_code_makes_this_machine_a_box(user: Shell, url: str, code: str, folder: Path) -> None:
    done = user.run("connect", f"{url}/", "--no-notifier", stdin=f" {code.upper()}\n")
    assert f"Connected to {url} as box" in done.stdout
    kept = [folder / "config.toml", folder / "token"]
    assert sorted(folder.iterdir()) == kept
    assert [stat.S_IMODE(file.stat().st_mode) for file in kept] == [0o600, 0o600]
    token = kept[1].read_text()
    assert token.startswith("rrb_")
    assert token not in done.stdout + done.stderr
    assert user.json("rooms", "--all")["rooms"] is not None
    before = [file.read_bytes() for file in kept]
    assert f"Connected to {url} as box" in user.run("connect", url, "--no-notifier", stdin="").stdout
    assert [file.read_bytes() for file in kept] == before


def test_a_token_does_as_well_and_may_come_from_a_file(
    user: Shell, operator: Shell, url: str, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "work9.token"
    operator.run("admin", "box", "add", "work9", "--token-file", str(file))
    assert " as work9 in " in user.run("connect", url, "--no-notifier", "--secret-file", str(file)).stdout
    assert (folder / "token").read_text() == file.read_text().strip()


def test_what_stands_in_the_configuration_stays(user: Shell, url: str, code: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    config = folder / "config.toml"
    config.write_text('# mine\nwake = "keystrokes"  # for now\n')
    user.run("connect", url, "--no-notifier", stdin=code)
    assert (
        config.read_text() == f'url = "{url}"\ntoken_file = "token"\n# mine\nwake = "keystrokes"  # for now\n'
    )


def test_a_token_that_is_worth_nothing_any_more_is_replaced(
    user: Shell, operator: Shell, url: str, folder: Path
) -> None:
    codes = [operator.json("admin", "invite", "work10")["code"] for _ in range(2)]
    user.run("connect", url, "--no-notifier", stdin=codes[0])
    config = (folder / "config.toml").read_text()
    (folder / "token").write_text("rrb_revoked")
    user.run("connect", url, "--no-notifier", stdin=codes[1])
    assert (folder / "config.toml").read_text() == config
    assert user.json("rooms", "--all")["rooms"] is not None


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ("", "code or a token is wanted"),
        ("two words\x07", "code or a token is wanted"),
        ("abcd-efgh-jkmn-pqrs", "wrong, used or too old"),
        ("rrb_no-such-token", "neither such a token nor such a code"),
        ("x" * 5000, "code or a token is wanted"),
    ],
)
def test_a_code_that_will_not_do_changes_nothing(
    user: Shell, url: str, folder: Path, secret: str, words: str
) -> None:
    said = user.run("connect", url, "--no-notifier", stdin=secret, status=2 if "wanted" in words else 1)
    assert words in said.stderr.lower()
    assert is_new(folder)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("http://93.184.216.34", "in clear to a public address"),
        ("ftp://127.0.0.1", "no url of a record"),
        ("http://127.0.0.1:9", "127.0.0.1:9"),
        ("https://eric:secret@127.0.0.1:9", "must hold no user name"),
    ],
)
def test_a_place_that_will_not_do_is_told_and_no_code_is_asked_for(
    user: Shell, folder: Path, wrong: str, words: str
) -> None:
    assert words in user.run("connect", wrong, stdin="abcd", status=1).stderr.lower()
    assert is_new(folder)


def test_another_record_is_not_given_up(user: Shell, url: str, code: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    config = folder / "config.toml"
    config.write_text('url = "https://other.example"\ntoken_file = "token"\n')
    assert "https://other.example" in user.run("connect", url, stdin=code, status=1).stderr
    assert config.read_text() == 'url = "https://other.example"\ntoken_file = "token"\n'


def test_a_code_is_not_spent_where_its_token_could_not_be_kept(
    user: Shell, url: str, code: str, folder: Path
) -> None:
    in_the_way = folder / "token.new"
    in_the_way.mkdir(parents=True)
    assert "cannot be written" in user.run("connect", url, stdin=code, status=1).stderr
    in_the_way.rmdir()
    user.run("connect", url, "--no-notifier", stdin=code)


def test_variables_that_come_before_it_are_named(user: Shell, url: str, code: str) -> None:
    done = user.run("connect", url, "--no-notifier", stdin=code, READYROOM_URL="https://other.example")
    assert "READYROOM_URL in the environment" in done.stdout


def test_without_anything_that_runs_units_it_says_how_to_run_the_notifier(
    user: Shell, url: str, code: str, tmp_path: Path
) -> None:
    done = user.run("connect", url, stdin=code, PATH=str(tmp_path))
    assert "The notifier is not installed" in done.stdout
    assert "readyroom notifier" in done.stdout


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_the_notifier_runs_afterwards(user: Shell, url: str, code: str) -> None:
    home = Path(user.env["HOME"])
    systemctl = home / "bin" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(SYSTEMCTL.format(python=sys.executable, home=str(home), unit=UNIT))
    systemctl.chmod(0o755)
    path = f"{systemctl.parent}:{os.environ['PATH']}"
    try:
        assert "The notifier runs (process " in user.run("connect", url, stdin=code, PATH=path).stdout
        assert user.json("status", PATH=path)["record"]["url"] == url
    finally:
        user.run("notifier", "uninstall", PATH=path)
