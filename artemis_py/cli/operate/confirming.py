"""Asks before something is lost: on a terminal with a question, elsewhere by refusing without ``--yes``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.errors import ArtemisError
from artemis_py.management.operation import Operation
from artemis_py.shown import escaped, say_made

COUNT: Final = "{messages}"
"""Stands in ``Operation.destroys`` for how many messages there are."""


class NotConfirmedError(ArtemisError):
    """Nobody has said that it should be done."""


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Adds ``--yes``."""
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask; needed where no terminal is there to ask")


def confirm(operation: Operation, args: argparse.Namespace, broker: BrokerHttp | None) -> None:
    """Return if what the operation destroys may be destroyed. ``broker`` says how much it is; None where nothing is
    counted. Raises NotConfirmedError.
    """
    if not operation.destroys or args.yes:
        return
    what = _what(operation, vars(args), broker)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotConfirmedError(f"this destroys {what}, and nobody is here to ask: add --yes")
    say_made(f"This destroys {escaped(what)}. Go on? [y/N] ", end="", stream=sys.stderr)
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmedError("nothing was changed")


def _what(operation: Operation, given: Mapping[str, Any], broker: BrokerHttp | None) -> str:
    text = operation.destroys
    if COUNT in text and broker is not None:
        count = _count(given, broker)
        text = text.replace(COUNT, "1 message" if count == 1 else f"{count:,} messages")
    for argument in operation.arguments:
        text = text.replace(f"{{{argument.name}}}", str(given.get(argument.name)))
    return text


def _count(given: Mapping[str, Any], broker: BrokerHttp) -> int:
    """How many messages it is about. Raises ArtemisError if the broker does not say, as there is no such queue."""
    if "queue" not in given:
        address = str(given["address"])
        broker.ask(f"/api/addresses/{quote(address, safe='')}")
        query = urlencode({"where": f"address={address}", "fields": "messageCount", "page": -1, "size": -1})
        return sum(row["messageCount"] for row in json.loads(broker.ask(f"/api/queues?{query}"))["data"])
    queue = f"/api/queues/{quote(str(given['queue']), safe='')}"
    if given.get("filter"):
        return int(json.loads(broker.ask(f"{queue}/count?{urlencode({'filter': given['filter']})}"))["count"])
    return int(json.loads(broker.ask(queue))["messageCount"])
