"""What a hook says to the notifier, in order, and what stays behind when nobody listens."""

from __future__ import annotations

import os

from notifier.control.client import Control, in_bytes
from notifier.paths import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from notifier.programs.base import Mode


def tell(
    socket_path: str, request: dict[str, Any], *, mode: Mode, hand_over: Callable[[str], None], missed: str
) -> dict[str, Any]:
    """Tell the notifier; returns its last answer, `{}` when nobody listens.

    A turn's end is told as "ending" first, so that a message that arrives while the unread ones are looked up
    is not lost; then as "continue" if `hand_over` took the text of its answer, else as "stop". Where a text
    was handed over between two tools, that is told in a second "tool". Any other text is in the answer.

    Raises:
        OSError: the notifier did not answer in time, or hung up.
        ValueError: its answer is none.
    """
    try:
        control = Control(socket_path)
    except OSError:
        _leave_word(missed, request)
        return {}
    with control:
        if request["event"] == "stop" and mode != "off":
            return _end_turn(control, request, mode, hand_over)
        if request["boundary"] and mode == "engage":
            return _hand_over_between(control, request, hand_over)
        return control.ask(request)


def _hand_over_between(
    control: Control, request: dict[str, Any], hand_over: Callable[[str], None]
) -> dict[str, Any]:
    answer = control.ask({**request, "mode": "engage"})
    if text := answer.pop("text", None):
        hand_over(text)
        control.ask({**request, "handed": True})
    return answer


def _end_turn(
    control: Control, request: dict[str, Any], mode: Mode, hand_over: Callable[[str], None]
) -> dict[str, Any]:
    answer = control.ask({**request, "event": "ending", "mode": mode})
    after = "stop"
    if text := answer.pop("text", None):
        try:
            hand_over(text)
            after = "continue"
        except OSError:
            pass
    control.ask({**request, "event": after})
    return answer


def _leave_word(missed: str, request: dict[str, Any]) -> None:
    """Keep the newest event of each process for the notifier's next start."""
    process = request.get("process")
    if process is None:
        return
    private(os.path.dirname(missed))
    private(missed)
    path = os.path.join(missed, f"{process['pid']}-{process['started']}.json")
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(in_bytes(request))
    os.replace(temporary, path)
