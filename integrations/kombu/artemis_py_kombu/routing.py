"""Which messages of an exchange a queue gets, as a filter of the broker on the header with the routing key."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Final

KEY: Final = "kombu_key"
"""The header of a message that has its routing key."""
_ANY_MAX: Final = 4


def filter_of(exchange_type: str, keys: Iterable[str]) -> str:
    """The filter of a queue that is bound to an exchange with these keys; "": it gets everything. Raises ValueError for
    a pattern that no filter can say.
    """
    if exchange_type == "fanout":
        return ""
    make = _topic if exchange_type == "topic" else _direct
    conditions = sorted({condition for key in keys for condition in make(key)})
    return "" if "" in conditions else " OR ".join(conditions)


def _direct(key: str) -> list[str]:
    return [f"{KEY} = {_text(key)}"]


def _topic(pattern: str) -> list[str]:
    """``*`` is one word, ``#`` any number of them, as in AMQP; words stand between dots."""
    words = pattern.split(".")
    if words == ["#"]:
        return [""]
    if "#" not in words:
        if "*" not in words:
            return _direct(pattern)
        # With no more dots than the pattern has, no % can span one.
        return [f"({_like(words)} AND {KEY} NOT LIKE '%{'.%' * len(words)}')"]
    if "*" in words:
        raise ValueError(f"the pattern {pattern!r} has both * and #, which no filter can say: bind several patterns")
    if words.count("#") > _ANY_MAX:
        raise ValueError(f"the pattern {pattern!r} has # more than {_ANY_MAX} times: bind several patterns")
    # Each # is either no word at all, or some.
    choices = [((), ("*",)) if word == "#" else ((word,),) for word in words]
    found = [[word for part in parts for word in part] for parts in product(*choices)]
    return [_like(some) if "*" in some else _direct(".".join(some))[0] for some in found]


def _like(words: Iterable[str]) -> str:
    return f"{KEY} LIKE {_text('.'.join('_%' if word == '*' else _literal(word) for word in words))} ESCAPE '\\'"


def _literal(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
