"""A log says where a fault came from, and nothing of what was said."""

from __future__ import annotations

import io

import pytest
import structlog

import api.logs
import notifier.logs


def swallow(said: str) -> None:
    try:
        int(said)
    except ValueError as cause:
        raise RuntimeError(f"could not keep {said}") from cause


@pytest.mark.parametrize("configure", [api.logs.configure, notifier.logs.configure])
def test_a_fault_in_the_log_holds_its_place_and_no_value(configure: object) -> None:
    out = io.StringIO()
    configure(stream=out)  # type: ignore[operator]
    try:
        swallow("zebra-quark")
    except RuntimeError:
        structlog.get_logger().exception("request_failed")
    finally:
        structlog.reset_defaults()
    logged = out.getvalue()
    assert "zebra" not in logged
    assert "RuntimeError at " in logged
    assert "ValueError at " in logged
    assert "swallow" in logged
