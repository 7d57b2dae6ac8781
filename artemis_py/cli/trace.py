"""``artemis-py trace MESSAGE-ID``: the life of a message, from the log of a running or stopped broker."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

from artemis_py.cli import logins
from artemis_py.cli.contexts import URL, URL_NAME, add_context, url_for
from artemis_py.errors import ArtemisError
from artemis_py.message import Message
from artemis_py.selector import compile_selector
from artemis_py.shown import as_json, escaped, many, say, say_made, shown_time, warn
from artemis_py.spark.log.http import Broker, HttpLog
from artemis_py.tracing.lives import LIVES_MAX, Lives, Moment
from artemis_py.tracing.reading import BrokerSource, DirectorySource, LogSource

HELP: Final = "tell the life of a message, from the log"
_WAIT_S: Final = 5
_WORD: Final = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.epilog = "Persistent messages on durable queues are in the log. docs/why.md has examples."
    parser.add_argument(
        "message",
        metavar="MESSAGE-ID",
        nargs="*",
        type=_number,
        help="the message-id of a MESSAGE frame, or its number",
    )
    parser.add_argument("--where", metavar="SELECTOR", help="messages whose headers match, such as \"order = '17'\"")
    parser.add_argument("--json", action="store_true", help="one JSON object for each moment")
    source = parser.add_argument_group("the log")
    source.add_argument(
        "--url", metavar="URL", help=f"a running broker (else {URL_NAME}, else that of the context, else {URL})"
    )
    source.add_argument(
        "--journal", metavar="DIR", type=Path, action="extend", nargs="+", default=[],
        help="instead of --url: journal and retention directory of one broker, which may be stopped",
    )  # fmt: skip
    add_context(source)
    logins.add_login(source)
    logins.add_tls(source)


def _number(text: str) -> int:
    """A message's number: the last part of a message-id, which has the consumer's number before it."""
    digits = text.rpartition("-")[2]
    if not digits.isascii() or not digits.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no message-id; it is a number, or two with a dash, as in 3-1234")
    return int(digits)


def run(args: argparse.Namespace) -> int:
    """Prints what happened to the messages, in order. Returns 1 if the log has none of them. Raises ArtemisError."""
    if bool(args.message) == bool(args.where):
        raise ArtemisError("give a MESSAGE-ID, or --where with a selector")
    lives = Lives(set(args.message), _matching(args.where))
    source = _opened(args)
    source.may_be_among = lives.may_be_among
    try:
        count = _read(source, lives, _print_json if args.json else _print)
    finally:
        source.close()
    for damage in source.damages:
        warn(damage)
    if source.lost:
        warn("retention had removed parts of the log before they were read")
    if lives.left_out:
        warn(f"{many(lives.left_out, 'message')} more match; {LIVES_MAX} are shown")
    if not count:
        warn(
            "the log has no such message. It has persistent messages on durable queues, from the beginning of the "
            "retained log (journal-retention-directory); without that, only what the journal still needs"
        )
        return 1
    if not args.json:
        for number, queue, who in lives.still_there():
            say(f"message {number} is on queue {queue}" + (f", with {escaped(who)}" if who else ""))
    return 0


def _matching(text: str | None) -> Callable[[Message], bool] | None:
    if text is None:
        return None
    selector = compile_selector(text)
    return lambda message: selector.matches(message.lookup)


def _opened(args: argparse.Namespace) -> LogSource:
    if args.journal:
        for directory in args.journal:
            if not directory.is_dir():
                raise ArtemisError(f"{directory} is not a directory")
        return DirectorySource(args.journal)
    url, user = logins.without_user(url_for(args, args.url))
    if not url.startswith(("http://", "https://")):
        raise ArtemisError(f"{url} is not the URL of an HTTP acceptor; write http://host:port")
    tls = logins.tls_of(args) if url.startswith("https://") else None
    broker = Broker(url.rstrip("/"), logins.login_of(args, user), tls, _WAIT_S)
    return BrokerSource(HttpLog(broker, "trace"))


def _read(source: LogSource, lives: Lives, show: Callable[[Moment], None]) -> int:
    """Show each moment. Returns how many there were."""
    count = 0
    for fields in source.begin(0, 0).queues:
        if fields.get("name"):
            lives.know_queue(fields)
    for part in source.parts():
        if part.begins_segment:
            lives.begin_segment()
        for event in part.events_about(lives.wants):
            for moment in lives.take(event):
                count += 1
                show(moment)
    return count


def _print_json(moment: Moment) -> None:
    say_made(as_json(moment.fields()))


def _print(moment: Moment) -> None:
    where = f" {escaped(moment.queue)}:" if moment.queue else ""
    who = f"  [{escaped(moment.who)}]" if moment.who else ""
    say(
        f"{shown_time(moment.time_ms)}  {moment.message_id}  {moment.what:<{_WORD}}{where} {escaped(moment.text)}{who}"
    )  # fmt: skip
