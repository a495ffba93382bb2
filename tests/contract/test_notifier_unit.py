"""`readyroom notifier install` and `uninstall`: the unit is sound, holds no secret, and starts a notifier."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.units import launchd_agent, systemd_unit
from tests.contract.test_daemon_command import READYROOM, answers, call, environ, until

__all__ = ["environ"]

UNIT = ".config/systemd/user/readyroom-notifier.service"
ODD = '/a folder/50% $HOME "quoted" back\\slash/grün'

SYSTEMCTL = '''\
#!{python}
"""As much of `systemctl --user` as is needed: it starts what the unit says, with no other environment."""
import os, shlex, signal, subprocess, sys, time
home = {home!r}
pid_file, unit = home + "/pid", home + "/{unit}"
match sys.argv[2:]:
    case ["enable", "--now", _]:
        said = [line.partition("=")[::2] for line in open(unit) if "=" in line]
        command = shlex.split(next(value for key, value in said if key == "ExecStart"))
        own = dict(shlex.split(value)[0].split("=", 1) for key, value in said if key == "Environment")
        with open(home + "/log", "ab") as log:
            child = subprocess.Popen(command, env={{"HOME": home, **own}}, cwd="/", stdout=log, stderr=log)
        open(pid_file, "w").write(str(child.pid))
    case ["disable", "--now", _] if os.path.exists(pid_file):
        pid = int(open(pid_file).read())
        os.kill(pid, signal.SIGTERM)
        while os.path.exists(f"/proc/{{pid}}") and ") Z " not in open(f"/proc/{{pid}}/stat").read():
            time.sleep(0.02)
        os.unlink(pid_file)
'''
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")


@pytest.fixture
def user(environ: dict[str, str]) -> dict[str, str]:
    """The user with the token in a file."""
    token = Path(environ["HOME"], "a token")
    token.touch(mode=0o600)
    token.write_text(environ.pop("READYROOM_TOKEN"))
    return {**environ, "READYROOM_TOKEN_FILE": str(token)}


@pytest.fixture
def managed(user: dict[str, str]) -> dict[str, str]:
    """The same with something that runs units."""
    programs = Path(user["HOME"], "bin")
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text(SYSTEMCTL.format(python=sys.executable, home=user["HOME"], unit=UNIT))
    systemctl.chmod(0o755)
    return {**user, "PATH": f"{programs}:{user['PATH']}"}


@on_linux
@pytest.mark.long
def test_it_is_installed_answers_and_is_removed(managed: dict[str, str]) -> None:
    try:
        done = call("notifier", managed, "install")
        assert done.returncode == 0, done.stderr
        assert answers(managed)
        unit = Path(managed["HOME"], UNIT).read_text()
        assert "a-token-that-nobody-may-see" not in unit
        assert managed["READYROOM_TOKEN_FILE"] in unit
        again = call("notifier", managed, "install")
        assert again.returncode == 0, again.stderr
    finally:
        gone = call("notifier", managed, "uninstall")
    assert gone.returncode == 0, gone.stderr
    until(lambda: not answers(managed), lambda: "it still answers")
    assert not Path(managed["HOME"], UNIT).exists()
    assert "No notifier is installed" in call("notifier", managed, "uninstall").stdout


@on_linux
def test_where_no_manager_can_be_reached_nothing_is_left_behind(user: dict[str, str]) -> None:
    programs = Path(user["HOME"], "bin")
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text("#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2; exit 1\n")
    systemctl.chmod(0o755)
    done = call("notifier", {**user, "PATH": f"{programs}:{user['PATH']}"}, "install")
    assert done.returncode == 1
    assert "(Failed to connect to bus: No medium found)" in done.stderr
    assert "readyroom notifier" in done.stderr
    assert not Path(user["HOME"], UNIT).exists()


def test_a_token_in_the_environment_is_refused(environ: dict[str, str]) -> None:
    done = call("notifier", environ, "install", "--dry-run")
    assert (done.returncode, done.stdout) == (1, "")
    assert "READYROOM_TOKEN_FILE" in done.stderr
    assert environ["READYROOM_TOKEN"] not in done.stderr


@on_linux
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "."),
        ("HOME", "/nowhere/at/all"),
        ("READYROOM_DATA_DIR", "/tmp/a\nb"),
        ("PATH", "/usr/bin:/a\nExecStart=/b"),
        ("XDG_STATE_HOME", "/tmp/\x1b[31m"),
        ("READYROOM_RUNTIME_DIR", "/tmp/a\tb"),
    ],
)
def test_what_no_unit_can_hold_is_named_and_nothing_is_written(
    user: dict[str, str], name: str, value: str
) -> None:
    done = call("notifier", {**user, name: value}, "install")
    assert done.returncode == 1
    assert done.stderr.startswith(f"readyroom: {name} is {value!r}")
    assert "Traceback" not in done.stderr
    assert not Path("/nowhere").exists()
    assert not Path(user["HOME"], UNIT).exists()


def test_a_relative_folder_of_settings_is_as_none(user: dict[str, str]) -> None:
    done = call("notifier", {**user, "XDG_CONFIG_HOME": "relative"}, "install", "--dry-run")
    assert done.stdout.startswith(str(Path(user["HOME"], UNIT)))


def test_a_trial_shows_the_unit_and_writes_nothing(user: dict[str, str]) -> None:
    done = call("notifier", user, "install", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "[Service]" in done.stdout
    assert not Path(user["HOME"], UNIT).exists()


@on_linux
@pytest.mark.long
def test_beside_a_notifier_that_runs_already_it_says_so(managed: dict[str, str]) -> None:
    running = subprocess.Popen([*READYROOM, "notifier"], env=managed, stderr=subprocess.DEVNULL)
    try:
        until(lambda: answers(managed), lambda: "it does not answer")
        done = call("notifier", managed, "install")
        assert done.returncode == 1
        assert f"process {running.pid}" in done.stderr
        assert not Path(managed["HOME"], UNIT).exists()
    finally:
        running.kill()
        running.wait()


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here: UNITS UNCHECKED"
)
@pytest.mark.parametrize("value", ["/plain", ODD])
def test_systemd_takes_the_unit(tmp_path: Path, value: str) -> None:
    unit = tmp_path / "readyroom-notifier.service"
    unit.write_text(systemd_unit([sys.executable, value], {"READYROOM_TOKEN_FILE": value}))
    said = _verified(unit, tmp_path)
    assert (said.returncode, said.stdout + said.stderr) == (0, "")
    unit.write_text(unit.read_text().replace("Restart=always", "Restart=sometimes"))
    assert "sometimes" in _verified(unit, tmp_path).stderr


def test_a_line_break_is_no_part_of_a_unit() -> None:
    with pytest.raises(ValueError, match="unit"):
        systemd_unit(["/bin/true"], {"NAME": "one\nExecStartPre=two"})


def test_a_launch_agent_holds_what_it_is_given() -> None:
    agent = plistlib.loads(launchd_agent([ODD, "notifier"], {"A": ODD}, log="/log").encode())
    assert agent["ProgramArguments"] == [ODD, "notifier"]
    assert agent["EnvironmentVariables"] == {"A": ODD}
    assert agent["KeepAlive"] is True
    assert agent["RunAtLoad"] is True


def _verified(unit: Path, runtime: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "verify", "--user", "--recursive-errors=no", str(unit)],
        env={"PATH": os.environ["PATH"], "HOME": str(runtime), "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        check=False,
    )
