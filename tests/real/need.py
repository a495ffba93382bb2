"""What a test cannot do without: skip where it is missing, fail where it was promised."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def need(tool: str) -> str:
    """The path of a program that this machine must have."""
    found = shutil.which(tool)
    if found is None:
        missing(f"{tool} is not installed")
    return found


def missing(what: str) -> NoReturn:
    """Skip for want of something; fail instead where READYROOM_REQUIRE_TOOLS=1 promises all tools."""
    if os.environ.get("READYROOM_REQUIRE_TOOLS") == "1":
        pytest.fail(f"{what}, and READYROOM_REQUIRE_TOOLS=1", pytrace=False)
    pytest.skip(what)
