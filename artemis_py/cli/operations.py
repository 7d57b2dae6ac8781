"""One word of the command line, such as ``queue``, with an action for each operation: its arguments, its request, and
what is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, final
from urllib.parse import quote, urlencode

from artemis_py.cli.answer_tables import print_changed, print_fields, print_list, print_reasons
from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.cli.logins import add_http
from artemis_py.cli.password_input import add_new_password, has_new_password, new_password_from
from artemis_py.errors import ArtemisError
from artemis_py.management.listing import FLAG
from artemis_py.management.operation import LINES, TEXTS, Argument, Operation
from artemis_py.management.table import OPERATIONS
from artemis_py.management.why.question import REASONS
from artemis_py.terminal_output import as_json, escaped, say_made, warn, warn_made

_PATIENCE_S: Final = 3600.0
"""An operation on millions of messages takes its time, so that nobody else has to wait for it."""


_NAMED_MAX: Final = 8
"""The usage of a command names its actions if they are no more: a line of thirty tells less than the list below it."""


class View(NamedTuple):
    """A list under another name, with other fields than usual."""

    action: str
    sentence: str
    fields: tuple[str, ...]


VIEWS: Final[dict[str, tuple[View, ...]]] = {
    "queue ls": (
        View(
            "stat",
            "The figures of queues, one row each, as `artemis queue stat` has them.",
            (
                "name", "address", "consumerCount", "messageCount", "messagesAdded", "deliveringCount", "messagesAcked",
                "scheduledCount", "routingType", "internalQueue",
            ),
        ),
    ),
}  # fmt: skip
"""By the command of the list."""


@final
class Operating:
    """The command of one word: the actions of the table of operations."""

    def __init__(self, word: str, help: str) -> None:
        self.HELP = help
        self._word = word

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds an action for each operation whose command begins with the word."""
        add(parser, self._word)

    def run(self, args: argparse.Namespace) -> int:
        """Asks the broker and prints its answer. Raises ArtemisError with what it says otherwise."""
        return run(args)


def add(parser: argparse.ArgumentParser, word: str) -> list[argparse.ArgumentParser]:
    """Adds an action for each operation whose command begins with the word. Returns their parsers."""
    actions = _with_views(word)
    metavar = "|".join(actions) if len(actions) <= _NAMED_MAX else "COMMAND"
    return add_actions(parser.add_subparsers(dest="action", required=True, metavar=metavar), word)


def _actions(word: str) -> dict[str, Operation]:
    return {operation.command.partition(" ")[2]: operation for operation in OPERATIONS if _word(operation) == word}


def add_actions(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], word: str
) -> list[argparse.ArgumentParser]:
    """Adds them to a command that may have actions of its own, too. Returns their parsers."""
    parsers: list[argparse.ArgumentParser] = []
    for action, (operation, view) in _with_views(word).items():
        description = _plain(operation.sentence if view is None else view.sentence)
        sentence = description.rstrip(".")
        one = subparsers.add_parser(action, help=sentence[0].lower() + sentence[1:], description=description)
        one.set_defaults(operation=operation, columns=() if view is None else view.fields)
        for argument in operation.arguments:
            _add_argument(one, argument)
        if operation.destroys or operation.previews:
            add_yes(one)
        if operation.is_download:
            one.add_argument("--output", metavar="FILE", help="write to this new file (else to standard output)")
        one.add_argument("--json", action="store_true", help="print what the broker answers, as JSON")
        add_http(one)
        parsers.append(one)
    return parsers


def _with_views(word: str) -> dict[str, tuple[Operation, View | None]]:
    """The actions of a word, and the views of its lists."""
    actions: dict[str, tuple[Operation, View | None]] = {}
    for action, operation in _actions(word).items():
        actions[action] = operation, None
        actions |= {view.action: (operation, view) for view in VIEWS.get(operation.command, ())}
    return actions


def _plain(sentence: str) -> str:
    """As a terminal shows it: the marks around code are for pages."""
    return sentence.replace("`", "")


def _word(operation: Operation) -> str:
    return operation.command.partition(" ")[0]


def _add_argument(parser: argparse.ArgumentParser, argument: Argument) -> None:
    if argument.is_secret:
        add_new_password(parser)
        return
    name, option = argument.name, f"--{argument.name}"
    help = _plain(argument.sentence).replace("%", "%%")
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
    broker = BrokerHttp.of(args, _PATIENCE_S)
    body = _lines_of(args.lines) if operation.takes_lines else body_of(operation, args)
    confirm(operation, args, broker)
    if operation.is_download:
        save(broker, path_of(operation, vars(args)), args.output)
        return 0
    answer = json.loads(broker.ask(path_of(operation, vars(args)), operation.method, body))
    if args.json:
        say_made(as_json(answer))
    elif operation.lists is REASONS:
        print_reasons(answer)
    elif operation.lists is not None:
        print_list(operation.lists, answer)
    elif operation.shows is not None and operation.method != "GET":
        print_changed(answer, operation.shows, _given(operation, args))
    else:
        print_fields(answer, operation.shows, operation.also, operation.inside)
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


# ---- secrets ---------------------------------------------------------------------------------------------------------
#
# Passwords among the arguments of an operation: from a file, the environment or a prompt, never from a word of the
# command line, and never in a URL.


def body_of(operation: Operation, args: argparse.Namespace) -> bytes | None:
    """The body of a request with them; None: there are none. One that is optional is asked for if nothing else would
    change. Raises PasswordError.
    """
    given = vars(args)
    found: dict[str, str] = {}
    for argument in operation.arguments:
        if not argument.is_secret:
            continue
        others = [one for one in operation.arguments if not one.is_required and not one.is_secret]
        is_alone = all(given[one.name] is None for one in others)
        if argument.is_required or has_new_password(args) or is_alone:
            found[argument.name] = new_password_from(args, f"new {argument.name} of {args.name}")
    return json.dumps(found).encode() if found else None


# ---- downloads -------------------------------------------------------------------------------------------------------
#
# Writes what a broker sends as a file: to a new file, or to standard output.


def save(broker: BrokerHttp, path: str, output: str | None) -> None:
    """Write the answer to the request of ``path`` to the file ``output``; None: to standard output, where a terminal
    gets nothing that could be an order to it. Raises ArtemisError.
    """
    if output is None:
        broker.fetch(path, _shows if sys.stdout.isatty() else sys.stdout.buffer.write)
        sys.stdout.flush()
        return
    try:
        with open(output, "xb") as file, ExitStack() as unfinished:
            unfinished.callback(os.unlink, output)
            broker.fetch(path, file.write)
            file.flush()
            unfinished.pop_all()
    except OSError as error:
        raise ArtemisError(f"{output} cannot be written: {error.strerror}") from None


def _shows(piece: bytes) -> None:
    lines = piece.decode(errors="replace").split("\n")
    sys.stdout.write("\n".join(escaped(line) for line in lines))


# ---- confirming ------------------------------------------------------------------------------------------------------
#
# Asks before something is lost: on a terminal with a question, elsewhere by refusing without ``--yes``.


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
