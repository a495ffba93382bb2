"""How systemd and launchd are told to run the notifier. Pure text; a unit never holds a secret."""

from __future__ import annotations

import plistlib
from collections.abc import Mapping, Sequence

SYSTEMD_UNIT = "readyroom-notifier.service"
LAUNCHD_LABEL = "readyroom.notifier"

AGAIN_SECONDS = 5
"""The pause before a start anew; also how often it is tried while another notifier has this user's place."""

_SYSTEMD = """\
[Unit]
Description=Readyroom's notifier, which wakes this user's agent sessions
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
{environment}
Restart=always
RestartSec={again}
UMask=0077
NoNewPrivileges=yes
# Sockets of tmux lie in /tmp.
PrivateTmp=no

[Install]
WantedBy=default.target
"""


def systemd_unit(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """A user unit. It waits for no network: the notifier starts offline."""
    return _SYSTEMD.format(
        command=" ".join(_quoted(word).replace("$", "$$") for word in command),
        environment="\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in environ.items()),
        again=AGAIN_SECONDS,
    )


def launchd_agent(command: Sequence[str], environ: Mapping[str, str], *, log: str) -> str:
    """A launch agent for sessions at the screen; `log` is the file that its standard error goes to."""
    agent = {
        "Label": LAUNCHD_LABEL,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(environ),
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": AGAIN_SECONDS,
        "LimitLoadToSessionType": "Aqua",
        "StandardErrorPath": log,
        "Umask": 0o077,
    }
    return plistlib.dumps(agent, sort_keys=False).decode()


def _quoted(word: str) -> str:
    """One word of a unit file, whatever it holds but line breaks."""
    if not word.isprintable():
        raise ValueError(f"{word!r} cannot stand in a unit")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
