"""The official conformance suite of MCP, in the revisions of both eras, against a record that runs."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.http.running import Party, running, settings_for
from tests.real import npm

pytestmark = pytest.mark.real

NEW, OLD = "2026-07-28", "2025-11-25"
SUITE_SECONDS = 200.0

GATED = {
    NEW: {
        "tools-list",
        "dns-rebinding-protection",
        "caching",
        "http-header-validation",
        "server-sse-multiple-streams",
        "input-required-result-unsupported-methods",
        "resources-list",
        "prompts-list",
        "server-stateless",
    },
    OLD: {
        "server-initialize",
        "ping",
        "tools-list",
        "dns-rebinding-protection",
        "resources-list",
        "prompts-list",
    },
}
"""What a server with tools of its own must pass."""

NOT_APPLICABLE = {
    "it calls tools that only the suite's own server has": {
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-with-progress",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "json-schema-2020-12",
        "server-sse-polling",
        "http-custom-header-server-validation",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots",
        "input-required-result-request-state",
        "input-required-result-multiple-input-requests",
        "input-required-result-multi-round",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "input-required-result-capability-check",
    },
    "it asks for prompts that only the suite's own server has": {
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
        "input-required-result-non-tool-request",
    },
    "it wants what is optional, and not declared by us: resources, completion, logging": {
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "resources-subscribe",
        "resources-unsubscribe",
        "completion-complete",
        "logging-set-level",
        "tools-call-with-logging",
    },
    "it is about the extension for tasks": {
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
    },
}
"""Scenarios that fail, by the reason; one that begins to pass has no place here."""

CHECKS_NOT_APPLICABLE = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
    }
}
"""Single checks that fail of scenarios that are gated: they call a tool of the suite's own server."""

Checks = list[dict[str, Any]]


@pytest.mark.parametrize("revision", [NEW, OLD])
async def test_what_a_server_with_its_own_tools_must_pass_is_passed(
    revision: str, database_url: str, tmp_path: Path
) -> None:
    suite = [str(npm.node()), str(npm.mcp_conformance()), "server", "--requirements", revision]
    caller: list[Party] = []
    async with running(settings_for(database_url, tmp_path), naming(caller)) as record:
        caller.append(await record.session(await record.box("work3")))
        await run([*suite, "--url", f"{record.url}/mcp", "--output-dir", str(tmp_path / "results")])
    results = {name_of(file): checks_in(file) for file in (tmp_path / "results").glob("*/checks.json")}
    for name in sorted(GATED[revision]):
        assert passed(results[name]), name
        assert failed(results[name]) == CHECKS_NOT_APPLICABLE.get(name, set()), results[name]
    expected = set.union(*NOT_APPLICABLE.values()) & set(results)
    others = {name for name, checks in results.items() if failed(checks)} - GATED[revision]
    assert others == expected


def test_what_is_not_applicable_has_one_reason_and_is_not_gated() -> None:
    every = [name for names in NOT_APPLICABLE.values() for name in names]
    assert len(every) == len({*every})
    gated = {name for names in GATED.values() for name in names}
    assert not {*every} & gated


def naming(caller: list[Party]) -> Callable[[ASGIApp], ASGIApp]:
    """The suite cannot say who calls: its requests are given the two headers, once there is somebody."""

    def around(app: ASGIApp) -> ASGIApp:
        async def named(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and caller and scope["path"] == "/mcp":
                who = caller[0]
                ours = [(b"authorization", f"Bearer {who.token}"), (b"x-tyode-agent", str(who.agent))]
                added = [(name, value.encode()) for name, value in ours]
                scope = {**scope, "headers": [*scope["headers"], *added]}
            await app(scope, receive, send)

        return named

    return around


async def run(command: list[str]) -> None:
    """Run the suite to its end; it exits with 1 for what is not applicable, too."""
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=SUITE_SECONDS, check=False
    )
    assert "=== SUMMARY ===" in done.stdout, done.stdout + done.stderr


def name_of(file: Path) -> str:
    """The scenario whose results lie in a folder: `server-NAME-2026-12-01T16-43-30-146Z`."""
    return file.parent.name.removeprefix("server-").rsplit("-", 6)[0]


def checks_in(file: Path) -> Checks:
    checks: Checks = json.loads(file.read_text(encoding="utf-8"))
    return checks


def failed(checks: Checks) -> set[str]:
    """The checks that failed."""
    return {check["id"] for check in checks if check["status"] == "FAILURE"}


def passed(checks: Checks) -> set[str]:
    """The checks that passed, but for what is added to every scenario."""
    return {check["id"] for check in checks if check["status"] == "SUCCESS"} - {"wire-schema-valid"}
