"""``artemis-py health URL``: does a running broker take messages? For containers, scripts and people."""

from __future__ import annotations

import argparse
import json
from http import HTTPStatus
from typing import Final

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.cli.logins import HTTP_HELP, add_access, http_acceptor
from artemis_py.cli.options import add_json
from artemis_py.errors import ArtemisError
from artemis_py.terminal_output import as_json, say, say_made

HELP: Final = "ask a running broker whether it takes messages"
_TIMEOUT_S: Final = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``health [URL] [--live] [--json]``."""
    parser.add_argument(
        "where",
        metavar="URL",
        nargs="?",
        help=f"its {HTTP_HELP}",
    )
    parser.add_argument("--url", dest="url", help="the same, as in other commands")
    parser.add_argument("--live", action="store_true", help="only ask whether the process answers")
    add_json(parser, "what the broker answers")
    add_access(parser.add_argument_group("a running broker"))
    parser.epilog = "exit codes: 0 it is up; 1 it is not, it did not answer within 5 s, or it refused the login"


def run(args: argparse.Namespace) -> int:
    """Asks, prints the answer, and returns the exit code. Raises ArtemisError if there is none."""
    broker = BrokerHttp(http_acceptor(args, args.where or args.url), _TIMEOUT_S)
    status, body = broker.answer("/health/live" if args.live else "/health/ready")
    if status not in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE):
        said = body.decode(errors="replace").strip()
        raise ArtemisError(f"{broker.broker} answers with HTTP status {status}: {said}")
    try:
        found = json.loads(body)
        state = str(found["status"])
    except (ValueError, TypeError, KeyError):
        raise ArtemisError(f"{broker.broker} is not an HTTP acceptor of a broker: it answers {body[:80]!r}") from None
    if args.format == "json":
        say_made(as_json(found))
    else:
        say(f"{state}: {found['reason']}" if "reason" in found else state)
        for warning in found.get("warnings", ()):
            say(f"warning: {warning}")
    return 0 if status == HTTPStatus.OK else 1
