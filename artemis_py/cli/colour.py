"""Colour for terminals, and for terminals only."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TextIO

from artemis_py.terminal_output import escaped

RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
CYAN: Final = "36"
BOLD: Final = "1"
DIM: Final = "2"


def painter(stream: TextIO) -> Callable[[str, str], str]:
    """Return a function that colours a one-line text, or returns it unchanged if ``stream`` is not a terminal or
    NO_COLOR is set.
    """
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        return lambda _colour, text: escaped(text)
    return lambda colour, text: f"\x1b[{colour}m{escaped(text)}\x1b[0m"
