"""Asks before something is lost: on a terminal with a question, elsewhere by refusing without ``--yes``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.errors import ArtemisError
from artemis_py.management.operation import Operation
from artemis_py.shown import escaped, warn_made

MESSAGES: Final = "{messages}"
CONSUMERS: Final = "{consumers}"
"""Stand for how many there are, in what an operation or a flag destroys."""
_FIELDS: Final = {MESSAGES: ("messageCount", "message"), CONSUMERS: ("consumerCount", "consumer")}
_AFFECTED_SHOWN_MAX: Final = 10


class NotConfirmedError(ArtemisError):
    """Nobody has said that it should be done."""


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Adds ``--yes``."""
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask; needed where no terminal is there to ask")


def confirm(operation: Operation, args: argparse.Namespace, broker: BrokerHttp | None) -> None:
    """Return if what the operation destroys may be destroyed. ``broker`` says how much it is; None where nothing is
    counted. Raises NotConfirmedError.
    """
    if not (operation.destroys or operation.previews) or args.yes:
        return
    if operation.previews and broker is not None:
        what = _affected(json.loads(broker.ask(operation.previews))["affected"])
        if not what:
            return
        says = f"affects {what}"
    else:
        says = f"destroys {_what(operation, vars(args), broker)}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotConfirmedError(f"this {says}, and nobody is here to ask: add --yes")
    warn_made(f"This {escaped(says)}. Go on? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmedError("nothing was changed")


def _affected(rows: Sequence[Mapping[str, Any]]) -> str:
    """Those that have messages or consumers, by name, with what would happen to them; empty: there are none."""
    rows = [row for row in rows if row["messages"] or row["consumers"]]
    shown = [
        f"{row['kind']} {row['name']} with {_several(row['messages'], 'message')} and "
        f"{_several(row['consumers'], 'consumer')}"
        f" ({row['what']})"
        for row in rows[:_AFFECTED_SHOWN_MAX]
    ]
    more = len(rows) - len(shown)
    return "; ".join([*shown, f"{more:,} more (artemis-py broker changes)"] if more else shown)


def _what(operation: Operation, given: Mapping[str, Any], broker: BrokerHttp | None) -> str:
    text = operation.destroys
    for argument in operation.arguments:
        if argument.destroys and given.get(argument.name):
            text += f", and {argument.destroys}"
    for place, (field, one) in _FIELDS.items():
        if place in text and broker is not None:
            count = _count(field, given, broker)
            if place == MESSAGES and given.get("count") is not None:
                count = min(count, int(given["count"]))
            text = text.replace(place, _several(count, one))
    for argument in operation.arguments:
        text = text.replace(f"{{{argument.name}}}", str(given.get(argument.name)))
    return text


def _several(count: int, one: str) -> str:
    return f"1 {one}" if count == 1 else f"{count:,} {one}s"


def _count(field: str, given: Mapping[str, Any], broker: BrokerHttp) -> int:
    """How many it is about. Raises ArtemisError if the broker does not say, as there is no such queue."""
    if "queue" not in given:
        address = str(given["address"])
        broker.ask(f"/api/addresses/{quote(address, safe='')}")
        query = urlencode({"where": f"address={address}", "fields": field, "page": -1, "size": -1})
        return sum(row[field] for row in json.loads(broker.ask(f"/api/queues?{query}"))["data"])
    queue = f"/api/queues/{quote(str(given['queue']), safe='')}"
    if given.get("filter"):
        return int(json.loads(broker.ask(f"{queue}/count?{urlencode({'filter': given['filter']})}"))["count"])
    return int(json.loads(broker.ask(queue))[field])
