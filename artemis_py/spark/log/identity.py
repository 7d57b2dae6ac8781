"""Which log is which. A log is known by its id; the name of its broker is a label, which may change, and which two
brokers may share. A query, and its checkpoint, know a log by a *key*: the broker's name when the query first saw it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from artemis_py.errors import PipelineError

_SHORT_ID: Final = 8
_logger = logging.getLogger(__name__)
Known = Mapping[str, str | None]
"""The keys of a checkpoint, and the ids of their logs; None: unknown."""


class Identity(NamedTuple):
    """A log's broker, by the name that it has now, and the log's id; None: it has none."""

    broker: str
    log_id: str | None


def keys_of(
    logs: Sequence[Identity], known: Known, taken: Collection[str] = (), *, is_complete: bool = True
) -> list[str]:
    """The keys of logs with different ids, in their order. ``taken`` are keys of other logs. The id decides, and for a
    log that is new to the checkpoint, or has no id, the name. Unless ``is_complete``, more logs may come: then a key
    whose id is known waits for its own. Raises PipelineError for two brokers of one name whose logs have no ids.
    """
    used = set(taken)
    found: dict[int, str] = {}
    of_id = {log_id: key for key, log_id in known.items() if log_id is not None}
    for place, (_, log_id) in enumerate(logs):
        key = of_id.get(log_id) if log_id is not None else None
        if key is not None and key not in used:
            found[place] = key
            used.add(key)
    for place, log in enumerate(logs):
        if place in found:
            continue
        waits = not is_complete and known.get(log.broker) not in (None, log.log_id)
        found[place] = _other_key(log, {*used, *known}) if waits or log.broker in used else log.broker
        used.add(found[place])
    return [found[place] for place in range(len(logs))]


def _other_key(log: Identity, used: Collection[str]) -> str:
    if log.log_id is None:
        raise PipelineError(
            f"two logs are of a broker named {log.broker}, and have no file log-id to tell one from the other; name "
            "each broker's directories, as in journal='one=/a,two=/b'"
        )
    short = f"{log.broker}@{log.log_id[:_SHORT_ID]}"
    return short if short not in used else f"{log.broker}@{log.log_id}"


def is_renamed(key: str, log: Identity) -> bool:
    """Does a log have a key that its broker's name would not give it?"""
    return key != log.broker and not key.startswith(f"{log.broker}@")


def warn_of_new_name(key: str, log: Identity) -> None:
    """Log that a broker has another name than the query's key for its log."""
    _logger.warning("broker %s is now called %s; its log (id %s) goes on as %s", key, log.broker, log.log_id, key)


def check_distinct(logs: Sequence[tuple[object, Identity]]) -> None:
    """Raises PipelineError for two logs with one id: the same one, or a copy of it. Each is with where it is."""
    found: dict[str, object] = {}
    for where, log in logs:
        if log.log_id in found:
            raise PipelineError(
                f"{found[log.log_id]} and {where} are one log, or copies of one: both have the id {log.log_id}, of "
                f"broker {log.broker}. Its rows would come twice, so name only one of them; the urls of a broker and "
                "its stand-by are joined by |"
            )
        if log.log_id is not None:
            found[log.log_id] = where


def shown(key: str, log_id: str | None) -> str:
    """A log for a user who has to find it."""
    return f"{key} (a log without an id)" if log_id is None else f"{key} (log id {log_id})"
