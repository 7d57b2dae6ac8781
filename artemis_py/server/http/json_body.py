"""Reads a client's JSON within limits, so that the worst it can cause is a refusal."""

from __future__ import annotations

import json
import sys
from typing import Final

_DEPTH_MAX: Final = 32


def parse_json(body: bytes) -> object:
    """The value. Raises ValueError with the reason: not JSON, nested too deeply, or text that is not Unicode."""
    try:
        value: object = json.loads(body)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # Python's message is about Python
        raise ValueError(f"a number has more than {sys.get_int_max_str_digits()} digits") from None
    level = [value]
    for _ in range(_DEPTH_MAX):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner += [*one, *one.values()]
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, str) and not _is_text(one):
                raise ValueError("a string has half of a surrogate pair")
        if not inner:
            return value
        level = inner
    raise ValueError(_TOO_DEEP)


_TOO_DEEP: Final = f"it is nested more than {_DEPTH_MAX} levels deep"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
