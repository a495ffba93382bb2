"""The embedded PostgreSQL: it keeps what was committed, and nothing left of it blocks the next start."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from deploy import places
from deploy.account import borrowed
from deploy.places import LOCATION_FILE, SYSTEM_FOLDER
from deploy.postgres import Postgres
from deploy.programs import UNUSED, PostgresFailed, find

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: lending PostgreSQL an account needs root")
on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="NOT RUN: only Linux tells a child of its parent's end"
)

OWNER = """
import sys, time
from pathlib import Path
import deploy.programs
from deploy.postgres import Postgres
if sys.argv[2] == "orphaned":
    deploy.programs.dies_with_us = lambda number: None
server = Postgres(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder that PostgreSQL's account can reach, whoever runs the tests."""
    path = Path(tempfile.mkdtemp(prefix="readyroom-"))
    path.chmod(0o755)
    yield path
    remove(path)


def remove(folder: Path) -> None:
    note = folder / LOCATION_FILE
    if note.exists():
        shutil.rmtree(note.read_text().strip(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def owner(folder: Path, kind: str = "usual") -> tuple[subprocess.Popen[str], psutil.Process]:
    """Another process that runs the folder's server, and that server."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder), kind], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    return process, psutil.Process(int(process.stdout.readline()))


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout
    process.stdout.close()


def ask(server: Postgres, sql: str) -> list[tuple[object, ...]]:
    async def asked() -> list[tuple[object, ...]]:
        connection = await asyncpg.connect(server.dsn)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    return asyncio.run(asked())


def wait_for(what: str, condition: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds} s for {what}"
        time.sleep(0.01)


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.long
def test_a_clean_stop_keeps_the_data(folder: Path) -> None:
    with Postgres(folder) as server:
        ask(server, "CREATE TABLE kept AS SELECT 1 AS n")
    with Postgres(folder) as server:
        assert ask(server, "SELECT n FROM kept") == [(1,)]


@pytest.mark.long
def test_a_killed_server_keeps_what_was_committed_and_comes_back(folder: Path) -> None:
    with Postgres(folder) as server:
        ask(server, "CREATE TABLE kept AS SELECT 1 AS n")
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        wait_for("the server to end", lambda: not server.running())
        server.spawn()
        wait_for("the server to come back", server.came_up)
        assert ask(server, "SELECT n FROM kept") == [(1,)]


@pytest.mark.long
@on_linux
def test_the_server_goes_down_with_a_killed_owner(folder: Path) -> None:
    process, server = owner(folder)
    kill(process)
    wait_for("the server to end", lambda: ended(server))
    assert not (Postgres(folder).data_dir / "postgres/data/postmaster.pid").exists()


@pytest.mark.long
def test_a_start_right_after_the_owner_was_killed_succeeds(folder: Path) -> None:
    process, _ = owner(folder)
    kill(process)
    with Postgres(folder) as server:
        assert ask(server, "SELECT 1") == [(1,)]


@pytest.mark.long
def test_a_server_that_outlived_its_owner_is_replaced(folder: Path) -> None:
    process, orphan = owner(folder, "orphaned")
    kill(process)
    assert not ended(orphan)
    with Postgres(folder) as server:
        assert ended(orphan)
        assert ask(server, "SELECT 1") == [(1,)]


@pytest.mark.long
def test_a_pid_file_that_names_another_living_process_does_not_block(folder: Path) -> None:
    with Postgres(folder) as server:
        account = server.programs.account
    bystander = subprocess.Popen(["sleep", "600"], user=account.uid if account else None)
    try:
        pid_file = folder / "postgres/data/postmaster.pid"
        pid_file.write_text(f"{bystander.pid}\n{pid_file.parent}\n1\n5432\n\n\n0 0\nready\n")
        with Postgres(folder) as server:
            assert ask(server, "SELECT 1") == [(1,)]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.long
def test_a_half_made_cluster_is_made_anew(folder: Path) -> None:
    account = borrowed()
    half = folder / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    if account:
        account.give(half)
    with Postgres(folder) as server:
        assert ask(server, "SELECT 1") == [(1,)]


def test_the_lock_is_private(folder: Path) -> None:
    with Postgres(folder) as server:
        assert (server.places.home / "lock").stat().st_mode & 0o777 == 0o600


def test_a_second_owner_is_refused(folder: Path) -> None:
    with Postgres(folder) as server:
        with pytest.raises(PostgresFailed, match="Another process"):
            Postgres(folder).start()
        assert ask(server, "SELECT 1") == [(1,)]


@pytest.mark.long
def test_a_start_that_fails_says_why_and_lets_go(folder: Path) -> None:
    with Postgres(folder):
        pass
    with pytest.raises(PostgresFailed, match="shared_buffers"):
        Postgres(folder, settings={"shared_buffers": "nonsense"}).start()
    with Postgres(folder) as server:
        assert ask(server, "SELECT 1") == [(1,)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["long" * 40, """odd, name "with" % and '"""])
def test_any_folder_name_will_do(folder: Path, name: str) -> None:
    inner = folder / name
    inner.mkdir()
    with Postgres(inner) as server:
        run = server.places.run
        assert ask(server, "SELECT 1") == [(1,)]
    assert not run.exists(), "a socket's folder elsewhere goes away with its server"
    with Postgres(inner) as server:
        assert (server.places.run, run.stat().st_mode & 0o777) == (run, 0o700)


def test_a_refused_row_is_not_shown_in_the_log(folder: Path) -> None:
    with Postgres(folder) as server:
        ask(server, "CREATE TABLE said (body text CONSTRAINT short CHECK (length(body) < 5))")
        with pytest.raises(asyncpg.CheckViolationError):
            ask(server, "INSERT INTO said SELECT 'sec' || 'ret'")
    log = (folder / "postgres.log").read_text()
    assert 'violates check constraint "short"' in log
    assert "secret" not in log


def test_text_is_utf8_and_time_is_utc(folder: Path) -> None:
    with Postgres(folder) as server:
        settings = "SELECT current_setting('server_encoding'), current_setting('timezone'), upper('été')"
        assert ask(server, settings) == [("UTF8", "UTC", "ÉTÉ")]
        assert ask(server, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == [(False,)]


def test_only_its_own_account_reaches_the_socket(folder: Path) -> None:
    with Postgres(folder) as server:
        assert server.places.run.stat().st_mode & 0o777 == 0o700
        assert ask(server, "SELECT current_setting('listen_addresses')") == [("",)]


@as_root
def test_as_root_a_reachable_folder_holds_the_cluster(folder: Path) -> None:
    with Postgres(folder) as server:
        assert server.places.cluster == folder / "postgres" / "data"
        assert server.pid
        assert psutil.Process(server.pid).username() == server.account_name != "root"
    assert not (folder / LOCATION_FILE).exists()


@as_root
def test_as_root_a_closed_folder_says_where_the_cluster_is_and_keeps_its_mode(folder: Path) -> None:
    folder.chmod(0o700)
    data_dir = folder / "data"
    data_dir.mkdir(mode=0o755)
    try:
        with Postgres(data_dir) as server:
            home = Path((data_dir / LOCATION_FILE).read_text().strip())
            assert home.parent == SYSTEM_FOLDER
            assert server.places.cluster.stat().st_mode & 0o777 == 0o700
            ask(server, "CREATE TABLE kept AS SELECT 1 AS n")
        assert folder.stat().st_mode & 0o777 == 0o700
        with Postgres(data_dir) as server:
            assert server.places.home == home
            assert ask(server, "SELECT n FROM kept") == [(1,)]
    finally:
        remove(data_dir)


@pytest.mark.long
@as_root
def test_as_root_a_folder_made_anew_at_the_same_path_starts_empty(folder: Path) -> None:
    folder.chmod(0o700)
    homes = []
    for _ in range(2):
        data_dir = folder / "data"
        data_dir.mkdir()
        with Postgres(data_dir) as server:
            homes.append(server.places.home)
            assert ask(server, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
        shutil.rmtree(data_dir)
    for home in homes:
        shutil.rmtree(home)
    assert len(set(homes)) == 2


@pytest.mark.long
@as_root
def test_as_root_a_strict_umask_shuts_nobody_out(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        with Postgres(folder) as server:
            assert ask(server, "SELECT 1") == [(1,)]
    finally:
        os.umask(before)


@pytest.mark.long
@as_root
def test_as_root_programs_that_the_account_cannot_reach_are_copied_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir(mode=0o700)
    wheel = find(None).folder.parents[1]
    for part in wheel.parent.glob(f"{wheel.name}*"):
        if not part.name.endswith("-info"):
            shutil.copytree(part, site / part.name, symlinks=True, ignore=UNUSED)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(places, "SYSTEM_FOLDER", folder / "system")
    for _ in range(2):
        data_dir = folder / "data"
        data_dir.mkdir(exist_ok=True)
        with Postgres(data_dir) as server:
            assert server.programs.folder.is_relative_to(folder / "system")
            assert ask(server, "SELECT 1") == [(1,)]
    assert len(list((folder / "system").iterdir())) == 1
