"""The path of the XSD."""

from __future__ import annotations

import os
from typing import Final

MAIN_FILE: Final = "artemis-py.xsd"


def schema_file() -> str:
    """Return the path of the XSD: inside the installed package, or next to it in a checkout."""
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    installed = os.path.join(package, "_schema", MAIN_FILE)
    return installed if os.path.exists(installed) else os.path.join(os.path.dirname(package), "schema", MAIN_FILE)
