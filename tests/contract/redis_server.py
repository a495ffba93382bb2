"""A real Redis or Valkey, to be stopped, frozen and started again."""

from __future__ import annotations

import itertools
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.contract.nerves import WAIT, free_port
from tests.real.need import missing


class RedisServer:
    """One server on a loopback port of its own; keeps nothing."""

    def __init__(self) -> None:
        program = shutil.which("valkey-server") or shutil.which("redis-server")
        self._program = program or missing("neither valkey-server nor redis-server is installed")
        self._port = free_port()
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def new_url(self) -> str:
        """A URL with a database number that nobody else has had."""
        return f"redis://127.0.0.1:{self._port}/{next(self._numbers)}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ["--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--databases", "1000"]
        self._process = subprocess.Popen([self._program, *options], stdout=subprocess.DEVNULL)
        end = time.monotonic() + WAIT
        while not self._answers():
            assert time.monotonic() < end, "Redis does not start"
            assert self._process.poll() is None, "Redis ended"
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it hang, with every connection open."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """A server that runs."""
    server = RedisServer()
    try:
        server.start()
        yield server
    finally:
        server.kill()
