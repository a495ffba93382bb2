"""The picture of a result: a chart a case, a bar a contender, as long as the median of its rounds."""

from __future__ import annotations

from typing import Any

import leather  # type: ignore[import-untyped]

PRODUCT, BASELINE = "#2a7f62", "#b8c4bf"


def plot(result: dict[str, Any]) -> bytes:
    """An SVG image without scripts."""
    grid = leather.Grid()
    for name, case in result["cases"].items():
        grid.add_one(_chart(name, case))
    image: str = grid.to_svg()
    return image.encode()


def _chart(name: str, case: dict[str, Any]) -> Any:
    bars = [(figures["per_second"]["median"], contender) for contender, figures in case["contenders"].items()]
    chart = leather.Chart(f"{name}: a second")
    chart.add_bars(bars, fill_color=lambda bar: BASELINE if bar.y in case["ratios"] else PRODUCT)
    return chart
