"""What a scene is played with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.real.model import Model
from tests.real.terminal import Terminal


@dataclass(frozen=True)
class Stage:
    """A real program, an empty folder, and a stand-in for the model."""

    program: Path
    folder: Path
    model: Model


Scene = Callable[[Stage], Iterator[Terminal]]
"""Brings a screen about, and yields the terminal that shows it."""
