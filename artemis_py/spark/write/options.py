"""The options of the sink: texts from the user, checked before Spark starts a task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from artemis_py.client.endpoint import Endpoint
from artemis_py.errors import ArtemisError, PipelineError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark import shared_options as shared
from artemis_py.units import parse_bytes

ROUTING_TYPES: Final = ("ANYCAST", "MULTICAST")

_MEANINGS: Final = {
    "url": "STOMP acceptors, tried in turn: tcp://host:61613,tcp://other:61613; stomps://host:61617 with TLS",
    **shared.MEANINGS,
    "address": "address of rows without one of their own",
    "persistent": "true or false",
    "priority": "0 to 9",
    "routingType": "ANYCAST or MULTICAST",
    "publishId": "a name for what this job publishes",
    "rowsPerTransaction": "a number of rows",
    "bytesPerTransaction": "a number of bytes, or a size such as 8MiB",
    "timeout": "a time to wait for the broker: 30 s, 2 minutes",
}
_NAMES: Final = {name.lower(): name for name in _MEANINGS}
_KAFKA_S: Final = {
    "kafka.bootstrap.servers": "url names the broker: tcp://host:61613",
    "topic": "option address sets the address of rows without one of their own",
}
"""Options of Spark's Kafka sink that have other names here."""
# Spark passes these on from writeStream, and path from save(path).
_SPARK_S_OWN: Final = frozenset({"checkpointlocation", "queryname", "outputmode", "mergeschema"})
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|seconds?|min|minutes?|h|hours?)?", re.IGNORECASE)
_UNITS_S: Final = {"ms": 0.001, "milli": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The user's options. ``publish_id`` is None if none was given."""

    endpoints: tuple[Endpoint, ...]
    login: ClientLogin
    tls: ClientTls | None
    address: str | None
    persistent: bool
    priority: int | None
    routing_type: str | None
    publish_id: str | None
    transaction_rows_max: int
    transaction_bytes_max: int
    timeout_s: float


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse the user's options. Raises PipelineError with the option, its value and the allowed values."""
    texts = _known(given)
    if not texts.get("url", "").strip():
        raise PipelineError(f"The sink needs the option url: {_MEANINGS['url']}")
    shared.check_no_user(texts["url"])
    endpoints = shared.endpoints_of(texts["url"], "url", _MEANINGS["url"])
    priority = _number(texts, "priority", None, 0, 9)
    rows_max = _number(texts, "rowsPerTransaction", 10_000, 1, None)
    assert rows_max is not None
    return SinkOptions(
        endpoints=endpoints,
        login=shared.login_of(texts),
        tls=shared.tls_options(texts, is_used=any(one.has_tls for one in endpoints)),
        address=texts.get("address") or None,
        persistent=_boolean(texts, "persistent", default=True),
        priority=priority,
        routing_type=_routing_type(texts),
        publish_id=texts.get("publishId") or None,
        transaction_rows_max=rows_max,
        transaction_bytes_max=_bytes(texts, "bytesPerTransaction", 8 * 1024 * 1024),
        timeout_s=_seconds(texts, "timeout", 60.0),
    )


def _known(given: Mapping[str, str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in given.items():
        name = _NAMES.get(key.lower())
        if name is not None:
            texts[name] = value
        elif key.lower() not in _SPARK_S_OWN:
            meant = _KAFKA_S.get(key.lower()) or shared.hint(key, _MEANINGS)
            raise PipelineError(f"The sink has no option {key}: {meant}")
    return texts


def _wrong(name: str, value: str) -> PipelineError:
    return PipelineError(f"Option {name} is {value!r}; allowed: {_MEANINGS[name]}")


def _boolean(texts: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = texts.get(name)
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise _wrong(name, value)
    return value.lower() == "true"


def _number(texts: Mapping[str, str], name: str, default: int | None, least: int, most: int | None) -> int | None:
    value = texts.get(name)
    if value is None:
        return default
    if (
        not (value.isascii() and value.strip().isdecimal())
        or int(value) < least
        or (most is not None and int(value) > most)
    ):
        raise _wrong(name, value)
    return int(value)


def _bytes(texts: Mapping[str, str], name: str, default: int) -> int:
    value = texts.get(name)
    if value is None:
        return default
    try:
        size_bytes = parse_bytes(value)
    except (ArtemisError, ValueError):
        raise _wrong(name, value) from None
    if size_bytes < 1:
        raise _wrong(name, value)
    return size_bytes


def _seconds(texts: Mapping[str, str], name: str, default: float) -> float:
    value = texts.get(name)
    if value is None:
        return default
    found = _SPAN.fullmatch(value.strip())
    if found is None:
        raise _wrong(name, value)
    unit = (found[2] or "s").lower()
    factor = next(seconds for start, seconds in _UNITS_S.items() if unit.startswith(start))
    return float(found[1]) * factor


def _routing_type(texts: Mapping[str, str]) -> str | None:
    value = texts.get("routingType")
    if value is not None and value.upper() not in ROUTING_TYPES:
        raise _wrong("routingType", value)
    return None if value is None else value.upper()
