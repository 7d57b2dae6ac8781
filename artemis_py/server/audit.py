"""The audit log: each change that somebody asked for, and each request that lacked a permission, with who, from where,
and what came of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from artemis_py.server.operational import LOGGER_NAME
from artemis_py.shown import quoted

CODE: Final = "AUD-1001"
DENIED_CODE: Final = "AUD-1002"
_TEXT_MAX: Final = 200
_PLACE: Final = re.compile(r"\{\w+\}\.")
"""The place of an argument in the name of a permission."""
_ON_BROKER: Final = "broker."


def tell(id: str, given: Mapping[str, Any], user: str | None, peer: str, result: str) -> None:
    """A line in the operational log. ``result`` is ``done``, or why nothing was done. Arguments that were not ``given``
    (None) are left out.
    """
    _tell(CODE, {"operation": id, **given}, user, peer, result, "operation carried out or refused")


def tell_denied(permission: str, given: Mapping[str, Any], user: str | None, peer: str, reason: str) -> None:
    """A line about a request that lacked a permission, such as ``queue.{queue}.pause``. What was in its query or body
    was not read.
    """
    id = _PLACE.sub("", permission).removeprefix(_ON_BROKER)
    _tell(DENIED_CODE, {"operation": id, **given}, user, peer, reason, "operation denied")


def _tell(code: str, fields: Mapping[str, Any], user: str | None, peer: str, result: str, meaning: str) -> None:
    all_fields = {**fields, "user": user or "", "from": peer, "result": result}
    shown = " ".join(f"{name}={quoted(_text(value))}" for name, value in all_fields.items() if value is not None)
    logging.getLogger(LOGGER_NAME).info("%s %s %s", code, shown, meaning)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:_TEXT_MAX]
