"""One word of the command line, such as ``queue``, with an action for each operation: its arguments, its request, and
what is printed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import quote, urlencode

from artemis_py.cli import broker_http
from artemis_py.cli.operate import confirming, downloads, reasons, secrets, shown
from artemis_py.cli.operate.words import VIEWS, WORDS, View
from artemis_py.cli.password_input import add_new_password
from artemis_py.errors import ArtemisError
from artemis_py.management.fields import FLAG
from artemis_py.management.operation import LINES, TEXTS, Argument, Operation
from artemis_py.management.table import OPERATIONS
from artemis_py.management.why.finding import REASONS
from artemis_py.shown import as_json, say_made, warn

_PATIENCE_S: Final = 3600.0
"""An operation on millions of messages takes its time, so that nobody else has to wait for it."""


@final
class Operating:
    """The command of one word: the actions of the table of operations."""

    def __init__(self, word: str) -> None:
        self.HELP = WORDS[word]
        self._word = word

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds an action for each operation whose command begins with the word."""
        add(parser, self._word)

    def run(self, args: argparse.Namespace) -> int:
        """Asks the broker and prints its answer. Raises ArtemisError with what it says otherwise."""
        return run(args)


def add(parser: argparse.ArgumentParser, word: str) -> list[argparse.ArgumentParser]:
    """Adds an action for each operation whose command begins with the word. Returns their parsers."""
    return add_actions(parser.add_subparsers(dest="action", required=True, metavar="|".join(_with_views(word))), word)


def _actions(word: str) -> dict[str, Operation]:
    return {operation.command.partition(" ")[2]: operation for operation in OPERATIONS if _word(operation) == word}


def add_actions(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], word: str
) -> list[argparse.ArgumentParser]:
    """Adds them to a command that may have actions of its own, too. Returns their parsers."""
    parsers: list[argparse.ArgumentParser] = []
    for action, (operation, view) in _with_views(word).items():
        description = operation.sentence if view is None else view.sentence
        sentence = description.rstrip(".")
        one = subparsers.add_parser(action, help=sentence[0].lower() + sentence[1:], description=description)
        one.set_defaults(operation=operation, columns=() if view is None else view.fields)
        for argument in operation.arguments:
            _add_argument(one, argument)
        if operation.destroys or operation.previews:
            confirming.add_yes(one)
        if operation.is_download:
            one.add_argument("--output", metavar="FILE", help="write to this new file (else to standard output)")
        one.add_argument("--json", action="store_true", help="print what the broker answers, as JSON")
        broker_http.add_broker(one)
        parsers.append(one)
    return parsers


def _with_views(word: str) -> dict[str, tuple[Operation, View | None]]:
    """The actions of a word, and the views of its lists."""
    actions: dict[str, tuple[Operation, View | None]] = {}
    for action, operation in _actions(word).items():
        actions[action] = operation, None
        actions |= {view.action: (operation, view) for view in VIEWS.get(operation.command, ())}
    return actions


def _word(operation: Operation) -> str:
    return operation.command.partition(" ")[0]


def _add_argument(parser: argparse.ArgumentParser, argument: Argument) -> None:
    if argument.is_secret:
        add_new_password(parser)
        return
    name, option = argument.name, f"--{argument.name}"
    help = argument.sentence.replace("%", "%%")
    if argument.type == LINES:
        parser.add_argument(name, metavar="FILE", type=Path, help=help)
    elif argument.is_required:
        parser.add_argument(name, metavar=name.upper(), help=help)
    elif argument.type == TEXTS:
        parser.add_argument(option, dest=name, action="append", default=[], metavar="TEXT", help=help)
    elif argument.type == FLAG:
        parser.add_argument(option, dest=name, action=argparse.BooleanOptionalAction, help=help)
    else:
        default = "" if argument.default in ("", None) else f" (default {argument.default})"
        parser.add_argument(option, dest=name, metavar=argument.type.upper(), help=help + default)


def run(args: argparse.Namespace) -> int:
    """Asks the broker and prints its answer. Raises ArtemisError with what it says otherwise."""
    operation: Operation = args.operation
    broker = broker_http.BrokerHttp.of(args, _PATIENCE_S)
    body = _lines_of(args.lines) if operation.takes_lines else secrets.body_of(operation, args)
    confirming.confirm(operation, args, broker)
    if operation.is_download:
        downloads.save(broker, path_of(operation, vars(args)), args.output)
        return 0
    answer = json.loads(broker.ask(path_of(operation, vars(args)), operation.method, body))
    if args.json:
        say_made(as_json(answer))
    elif operation.lists is REASONS:
        reasons.print_reasons(answer)
    elif operation.lists is not None:
        shown.print_list(operation.lists, answer)
    elif operation.shows is not None and operation.method != "GET":
        shown.print_changed(answer, operation.shows, _given(operation, args))
    else:
        shown.print_fields(answer, operation.shows, operation.also, operation.inside)
    failures = answer.get("failures", ()) if isinstance(answer, dict) and operation.method != "GET" else ()
    for failure in failures:
        warn(f"not done, and stays as it was: {failure}")
    if isinstance(answer, dict) and answer.get("warning") and not args.json:
        warn(f"warning: {answer['warning']}")
    return 1 if failures or _is_incomplete(answer) else 0


def _is_incomplete(answer: Any) -> bool:
    """Did messages stay that were to be moved, retried or removed, or are others gone for them? Those that consumers
    have are among the first.
    """
    if not isinstance(answer, dict) or answer.get("dryRun"):
        return False
    names = ("kept", "stoppedBecause", "inDelivery", "replaced")
    return any(answer.get(name) for name in names)


def _lines_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ArtemisError(f"{path}: {error.strerror or error}") from None


def _given(operation: Operation, args: argparse.Namespace) -> list[str]:
    return [argument.name for argument in operation.arguments if vars(args)[argument.name] is not None]


def path_of(operation: Operation, given: dict[str, Any]) -> str:
    """The path of the request, with its query; a secret is in no URL."""
    path, query = operation.path, []
    for argument in operation.arguments:
        if argument.is_secret or argument.type == LINES:
            continue
        value = given[argument.name]
        if operation.is_in_path(argument):
            path = path.replace(f"{{{argument.name}}}", quote(value, safe=""))
        elif isinstance(value, bool):
            query.append((argument.name, str(value).lower()))
        elif isinstance(value, list):
            query += [(argument.name, text) for text in value]
        elif value is not None:
            query.append((argument.name, str(value)))
    if operation.lists is not None and not given.get("fields", True) and not given["json"]:
        query.append(("fields", ",".join(given["columns"] or operation.lists.brief)))
    return f"{path}?{urlencode(query)}" if query else path
