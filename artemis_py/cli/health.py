"""``artemis-py health URL``: does a running broker take messages? For containers, scripts and people."""

from __future__ import annotations

import argparse
import json
from http import HTTPStatus
from typing import Final

from artemis_py.cli import broker_http
from artemis_py.cli.context import URL, URL_NAME, add_context, url_for
from artemis_py.cli.options import add_json
from artemis_py.errors import ArtemisError
from artemis_py.shown import as_json, say, say_made

HELP: Final = "ask a running broker whether it takes messages"
_TIMEOUT_S: Final = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``health [URL] [--live] [--json]``."""
    parser.add_argument(
        "where",
        metavar="URL",
        nargs="?",
        help=f"its HTTP acceptor (else {URL_NAME}, else that of the context, else {URL})",
    )
    parser.add_argument("--live", action="store_true", help="only ask whether the process answers")
    add_json(parser, "what the broker answers")
    add_context(parser)
    broker_http.add_arguments(parser)
    parser.epilog = "exit codes: 0 it is up; 1 it is not, it did not answer within 5 s, or it refused the login"


def run(args: argparse.Namespace) -> int:
    """Asks, prints the answer, and returns the exit code. Raises ArtemisError if there is none."""
    where = url_for(args, args.where)
    broker = broker_http.BrokerHttp(args, where, _TIMEOUT_S)
    status, body = broker.answer("/health/live" if args.live else "/health/ready")
    if status not in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE):
        said = body.decode(errors="replace").strip()
        raise ArtemisError(f"{where} answers with HTTP status {status}: {said}")
    try:
        found = json.loads(body)
        state = str(found["status"])
    except (ValueError, TypeError, KeyError):
        raise ArtemisError(f"{where} is no HTTP acceptor of a broker: it answers {body[:80]!r}") from None
    if args.format == "json":
        say_made(as_json(found))
    else:
        say(f"{state}: {found['reason']}" if "reason" in found else state)
        for warning in found.get("warnings", ()):
            say(f"warning: {warning}")
    return 0 if status == HTTPStatus.OK else 1
