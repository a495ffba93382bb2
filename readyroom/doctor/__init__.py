"""`readyroom doctor`: what works on this box, what does not, and what mends it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from readyroom import __version__
from readyroom.doctor.findings import Finding
from readyroom.doctor.round import examine
from readyroom.entrance import enter
from readyroom.screen import Screen

STYLES = {"ok": "green", "failed": "bold red", "skipped": "dim"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Examine, and show; 1 when something failed."""
    return enter(app, argv[1:], name="readyroom doctor")


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, one document.")] = False,
) -> None:
    """Check whether sessions of this box can be woken, and say what mends what is wrong.

    At the end a throw-away session is started, written to, and must be woken and read. It is gone afterwards.
    """
    screen = Screen(as_json=as_json)
    found = asyncio.run(_examined(screen))
    sound = all(finding.state != "failed" for finding in found)
    if as_json:
        screen.json({"ok": sound, "version": __version__, "checks": [asdict(finding) for finding in found]})
    if not sound:
        raise typer.Exit(1)


async def _examined(screen: Screen) -> list[Finding]:
    found: list[Finding] = []
    async for finding in examine():
        found.append(finding)
        if not screen.as_json:
            _show(screen, finding)
    return found


def _show(screen: Screen, finding: Finding) -> None:
    screen.line(f"{finding.state:<8} {finding.check:<12} {finding.detail}", STYLES[finding.state])
    if finding.fix:
        screen.line(f"{'':<22}{finding.fix}")
    screen.flush()
