"""``artemis-py trace MESSAGE-ID``: the life of a message, from the log of a running or stopped broker."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, Final
from urllib.parse import urlencode

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.cli.logins import add_http, http_acceptor
from artemis_py.errors import ArtemisError
from artemis_py.history import THERE
from artemis_py.message import Message
from artemis_py.selector import compile_selector
from artemis_py.spark.log.http import Broker, HttpLog
from artemis_py.terminal_output import PROGRAM, as_called, as_json, escaped, many, say, say_made, shown_time, warn
from artemis_py.tracing.lives import LIVES_MAX, Lives, follow
from artemis_py.tracing.reading import BrokerSource, DirectorySource
from artemis_py.tracing.source import LogSource

HELP: Final = "tell the life of a message, from the log"
_WAIT_S: Final = 5
_ANSWER_S: Final = 60.0
_WORD: Final = 12
_NOW: Final = "now"
_DATE: Final = 24
_COMMANDS_MAX: Final = 5

Answers = Iterator[Mapping[str, Any]]
"""Of the operation traceMessage, or like those."""


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
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument(
        "--journal", metavar="DIR", type=Path, action="extend", nargs="+", default=[],
        help="instead of a running broker: journal and retention directory of one, which may be stopped",
    )  # fmt: skip
    add_http(parser)


def _number(text: str) -> int:
    """A message's number: the last part of a message-id, which has the consumer's number before it."""
    digits = text.rpartition("-")[2]
    if not digits.isascii() or not digits.isdigit():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a message-id; it is a number, or two with a dash, as in 3-1234"
        )
    return int(digits)


def run(args: argparse.Namespace) -> int:
    """Prints what happened to the messages, in order. Returns 1 if the log has none of them. Raises ArtemisError."""
    if bool(args.message) == bool(args.where):
        raise ArtemisError("give a MESSAGE-ID, or --where with a selector")
    answers = _told(args) if args.message and not args.journal else _read(args)
    moments: dict[str, Mapping[str, Any]] = {}
    last: Mapping[str, Any] = {}
    for last in answers:
        for moment in last["data"]:
            text = as_json(moment)
            if text not in moments and not args.json:  # two wanted messages may have the same copy
                _print(moment)
            moments[text] = moment
    if args.json:
        say_made(as_json({**last, "count": len(moments), "data": [*moments.values()]}))
    else:
        _say_where_to_look(args, list(moments.values()))
    _warn(last)
    if not moments:
        warn(
            "the log has no such message. It has persistent messages on durable queues, from the beginning of the "
            "retained log (journal-retention-directory); without that, only what the journal still needs"
        )
        return 1
    return 0


def _told(args: argparse.Namespace) -> Answers:
    """What a running broker tells, a part after the other."""
    broker = BrokerHttp.of(args, _ANSWER_S)
    for number in args.message:
        after = 0
        while True:
            query = urlencode({"after": after}) if after else ""
            answer = json.loads(broker.ask(f"/api/messages/{number}/life" + (f"?{query}" if query else "")))
            yield answer
            if answer["isWhole"]:
                break
            after = answer["readTo"]


def _read(args: argparse.Namespace) -> Answers:
    """What the log tells that is read here."""
    lives = Lives(set(args.message), _matching(args.where))
    source = _opened(args)
    told = {"count": 0, "isWhole": True, "lostParts": 0, "leftOut": 0}
    try:
        for moments in follow(source, lives):
            if moments:
                yield {**told, "data": [moment.fields() for moment in moments]}
    finally:
        source.close()
    for damage in source.damages:
        warn(damage)
    yield {
        **told,
        "lostParts": source.lost,
        "leftOut": lives.left_out,
        "data": [moment.fields() for moment in lives.still_there()],
    }


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
    broker = Broker(*http_acceptor(args, args.url), _WAIT_S)
    return BrokerSource(HttpLog(broker, "trace"))


def _say_where_to_look(args: argparse.Namespace, moments: Sequence[Mapping[str, Any]]) -> None:
    """Name the commands that show what is still there, and the lives of originals of which only copies are shown."""
    known = {one["messageID"] for one in moments}
    originals = dict.fromkeys(one["original"] for one in moments if one["original"] and one["original"] not in known)
    there = [one for one in moments if one["what"] == THERE[0] and not args.journal]
    found = [(f"message {one['messageID']}", f"message show {quote(one['queue'])} {one['messageID']}") for one in there]
    places = "".join(f" {quote(str(one))}" for one in args.journal)
    found += [("its original", f"trace {number}{f' --journal{places}' if places else ''}") for number in originals]
    broker = "".join(f" --{name} {quote(at)}" for name in ("url", "context") if (at := getattr(args, name)))
    for what, command in found[:_COMMANDS_MAX]:
        say(as_called(f"{what}:  {PROGRAM} {command}{broker}"))


def _warn(told: Mapping[str, Any]) -> None:
    """Say what is missing."""
    if told.get("lostParts"):
        warn(f"{many(told['lostParts'], 'part')} of the log could not be read: damaged, or removed by retention")
    if told.get("leftOut"):
        warn(f"{many(told['leftOut'], 'message')} more match; {LIVES_MAX} are shown")


def _print(moment: Mapping[str, Any]) -> None:
    where = f" {escaped(moment['queue'])}:" if moment["queue"] else ""
    who = f"  [{escaped(moment['who'])}]" if moment["who"] else ""
    date = shown_time(moment["time"]) if moment["time"] else f"{_NOW:<{_DATE}}"
    say(f"{date}  {moment['messageID']}  {moment['what']:<{_WORD}}{where} {escaped(moment['text'])}{who}")
