"""What can be looked up is complete, and what the documents link to is there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import api.errors
from api.problems import STATUS
from api.settings import Settings
from notifier.settings import Settings as WorkstationSettings
from readyroom.__main__ import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def leaves() -> list[type[api.errors.ServiceError]]:
    classes = [each for _, each in inspect.getmembers(api.errors, inspect.isclass)]
    return [each for each in classes if issubclass(each, api.errors.ServiceError) and "code" in vars(each)][:]


@pytest.mark.parametrize("error", [each for each in leaves() if each is not api.errors.ServiceError])
def test_every_error_has_its_line_with_the_status_that_it_costs(error: type[api.errors.ServiceError]) -> None:
    status = next(STATUS[kind] for kind in error.__mro__ if kind in STATUS)
    assert f"| `{error.code}` | {status} |" in read("reference/errors.md")


def test_every_code_is_used_once() -> None:
    codes = [each.code for each in leaves()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("field", sorted({*Settings.model_fields, *WorkstationSettings.model_fields}))
def test_every_setting_is_described(field: str) -> None:
    assert f"| `READYROOM_{field.upper()}` |" in read("reference/settings.md")


@pytest.mark.parametrize(
    "field", [name for name, each in Settings.model_fields.items() if each.default is not None]
)
def test_every_default_is_the_documented_one(field: str) -> None:
    default = Settings.model_fields[field].default
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    assert f"| `READYROOM_{field.upper()}` | {shown} |" in read("reference/settings.md")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_described(command: str) -> None:
    assert f"readyroom {command}" in read("reference/cli.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
