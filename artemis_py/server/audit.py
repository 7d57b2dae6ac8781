"""The audit log: each change that somebody asked for, with who, from where, and what came of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from artemis_py.server.operational import LOGGER_NAME, quoted

CODE: Final = "AUD-1001"
_TEXT_MAX: Final = 200


def tell(id: str, given: Mapping[str, Any], user: str | None, peer: str, result: str) -> None:
    """A line in the operational log. ``result`` is ``done``, or why nothing was done."""
    fields = {"operation": id, **given, "user": user or "", "from": peer, "result": result}
    shown = " ".join(f"{name}={quoted(str(value)[:_TEXT_MAX])}" for name, value in fields.items())
    logging.getLogger(LOGGER_NAME).info("%s %s operation carried out or refused", CODE, shown)
