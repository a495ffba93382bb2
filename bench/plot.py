"""The picture of a result: a group of bars a case, a bar a contender, with the range of its rounds."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pygal  # type: ignore[import-untyped]
from pygal.style import CleanStyle  # type: ignore[import-untyped]


def plot(result: dict[str, Any], *, title: str) -> bytes:
    """An SVG image without scripts."""
    chart = pygal.Bar(
        js=(),
        title=title,
        y_title="operations a second",
        style=CleanStyle(font_family="sans-serif"),
        width=960,
        height=540,
        legend_at_bottom=True,
        pretty_print=True,
        no_prefix=True,
        value_formatter=lambda number: f"{number:,.0f}",
    )
    chart.add_xml_filter(_without_scripts)
    cases = result["cases"]
    chart.x_labels = list(cases)
    for name in next(iter(cases.values()))["contenders"]:
        chart.add(name, [_bar(case["contenders"][name]["per_second"]) for case in cases.values()])
    image: bytes = chart.render()
    return image


def _without_scripts(image: ElementTree.Element) -> ElementTree.Element:
    for part in list(image.iter()):
        for script in part.findall("{*}script"):
            part.remove(script)
    return image


def _bar(figure: dict[str, float]) -> dict[str, Any]:
    return {"value": figure["median"], "ci": {"low": figure["low"], "high": figure["high"]}}
