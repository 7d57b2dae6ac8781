"""What a queue and its address are composed of, as plain values that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from artemis_py.core.broker import Broker
from artemis_py.selector import Selector

_MISSING: Final = object()
_PLAIN: Final = (bool, int, float, str, bytes, type(None))
_PACKAGES: Final = ("artemis_py.core.", "artemis_py.selector", "artemis_py.message", "artemis_py.config.tables.views")
_APART: Final = frozenset(
    (
        # others' parts
        "host", "_host", "budget", "_budget", "memory", "_memory", "_holdings", "account", "_log", "_files", "log",
        # what happens, and what is worked out from the rest
        "plan", "losses", "changes", "noted_ready", "had_binding", "empty_since_ms", "has_lost_one", "queue_id",
        "_queue_id", "has_left", "dry", "id",
        # compared apart
        "settings", "own", "attributes", "configured", "address",
        # of each object
        "__weakref__", "__dict__",
    )
)  # fmt: skip


def facts(broker: Broker) -> dict[str, Any]:
    """Of the queue q and its address a."""
    address, queue = broker.addresses["a"], broker.queues["q"]
    return {"address": _walk(address, {id(queue)}), "queue": _walk(queue, {id(address)})}


def _walk(value: Any, seen: set[int]) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Selector):
        return f"selector {value.text}"
    if isinstance(value, Mapping):
        return {str(key): _walk(each, seen) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        shown = [_walk(each, seen) for each in value]
        return sorted(shown, key=str) if isinstance(value, set | frozenset) else shown
    kind = type(value)
    if not kind.__module__.startswith(_PACKAGES) or id(value) in seen:
        return f"a {kind.__name__}"
    seen.add(id(value))  # it is shown once
    found: dict[str, Any] = {"is": kind.__name__}
    names = _slots_of(kind)  # type: ignore[arg-type]
    for name in sorted(names.keys() | (vars(value).keys() - _APART)) if hasattr(value, "__dict__") else names:
        each = getattr(value, name, _MISSING)
        if each is not _MISSING:
            found[name] = _walk(each, seen)
    return found


@cache
def _slots_of(kind: type) -> dict[str, None]:
    """The names of those that count, sorted."""
    slots = {name for each in kind.__mro__ for name in getattr(each, "__slots__", ())}
    return dict.fromkeys(sorted(slots - _APART))
