"""``artemis-py events``: what happens in a running broker, a line each."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from artemis_py.cli.broker_http import BrokerHttp, RefusedError
from artemis_py.cli.logins import add_http
from artemis_py.client.retry import Pauses
from artemis_py.errors import ArtemisError
from artemis_py.management.notifications import SENTENCES
from artemis_py.terminal_output import as_json, escaped, say, say_made, warn

HELP: Final = "print what happens in a running broker"
_PATH: Final = "/api/events"
_REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""Trying again changes nothing."""
_RETRY_S: Final = 0.5
_RETRY_S_MAX: Final = 5.0
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/@+$#*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument(
        "--follow", "-f", action="store_true", help="when the broker stops, wait for it and go on where this ended"
    )
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="TYPE",
        help=f"only events of this type; may be given several times: {', '.join(SENTENCES)}",
    )
    parser.add_argument("--json", action="store_true", help="print each event as the broker tells it, as JSON")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    """Prints events until the broker stops; with ``--follow`` until it refuses the user. Raises ArtemisError."""
    listening = _Listening(args)
    while True:
        listening.listen()
        if not args.follow:
            return 0
        listening.wait()


class _Listening:
    def __init__(self, args: argparse.Namespace) -> None:
        self._broker = BrokerHttp.of(args)
        self._follows = args.follow
        self._prints_json = args.json
        self._query = f"?{urlencode([('type', type) for type in args.type])}" if args.type else ""
        self._last_id = ""
        self._pauses = Pauses(_RETRY_S, _RETRY_S_MAX)
        self._has_begun = False

    def listen(self) -> None:
        """Print events until the response ends. Raises ArtemisError if there is none, unless there was one before."""
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        try:
            for event in _events(self._broker.lines(_PATH + self._query, headers)):
                self._has_begun = True
                self._pauses.reset()
                self._last_id = event.get("id", self._last_id)
                data = json.loads(event["data"])
                self._print(event["event"], data)
                if event["event"] == "problem" and "watch" not in data:
                    raise ArtemisError(f"the broker has ended the events: {data['error']}")
        except ArtemisError as error:
            is_refused = isinstance(error, RefusedError) and error.status in _REFUSED
            if is_refused or not (self._follows and self._has_begun):
                raise
            warn(f"{error}; trying again")

    def wait(self) -> None:
        """Wait a while, longer each time."""
        time.sleep(self._pauses.next_s())

    def _print(self, kind: str, data: Mapping[str, Any]) -> None:
        if self._prints_json:
            say_made(as_json({"event": kind, **data}))
        elif kind == "notification":
            say(_line(data))
        elif kind == "lost":
            count = data["count"]
            say("some events are missing" if count < 0 else f"{count:,} events are missing: they came too fast")
        sys.stdout.flush()  # somebody may read them as they come


def _events(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """Server-sent events, each with its fields; comments are dropped."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif not line:
            if "data" in fields:
                yield fields
            fields = {}


def _line(data: Mapping[str, Any]) -> str:
    """Time, type, and the fields that are not empty."""
    at = datetime.fromtimestamp(data["at"] / 1000).astimezone()
    fields = [f"{name}={_shown(value)}" for name, value in data.items() if name not in ("type", "at") and value != ""]
    return f"{at:%H:%M:%S}.{data['at'] % 1000:03d} {data['type']} {' '.join(fields)}"


def _shown(value: object) -> str:
    text = escaped(str(value))
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)
