"""The address that the record listens on."""

from __future__ import annotations

import ipaddress
import socket

BACKLOG = 2048


class CannotListen(Exception):
    """The address is taken, not ours, or not an address."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        CannotListen: with what to do about it.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise CannotListen(
            f"{host!r} is no address to listen on ({error.strerror}). Try --host 127.0.0.1."
        ) from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(
            f"Cannot listen on {host} port {port}: {error.strerror}. Another program may use this port: "
            "stop it, or choose another one with --port or READYROOM_PORT (0 takes a free one)."
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Where this machine's own programs reach it."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"http://[{host}]:{port}" if address.version == 6 else f"http://{host}:{port}"


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can connect."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback
