"""One line of the doctor's list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: its name.
        state: `skipped` where there was nothing to check, or no way to.
        detail: what was seen.
        fix: what mends it; always there when it failed.
    """

    check: str
    state: Literal["ok", "failed", "skipped"]
    detail: str
    fix: str | None = None


def ok(check: str, detail: str) -> Finding:
    """All is well."""
    return Finding(check, "ok", detail)


def failed(check: str, detail: str, fix: str) -> Finding:
    """Something is wrong."""
    return Finding(check, "failed", detail, fix)


def skipped(check: str, why: str, fix: str | None = None) -> Finding:
    """Nothing is known; `fix` says how it could be."""
    return Finding(check, "skipped", why, fix)
