"""``artemis-py completion SHELL``: the script with which a shell completes what may stand where the cursor is. It runs
the program with what is written so far, and argcomplete answers from the parsers of the commands. Here is what it
cannot know: names that the broker knows, contexts, and fields of lists.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import argcomplete
from argcomplete.completers import FilesCompleter, SuppressCompleter
from argcomplete.shell_integration import shellcode

from artemis_py.cli import PROGRAM
from artemis_py.cli.main import COMMANDS, command_of
from artemis_py.cli.options import Parser
from artemis_py.errors import ArtemisError
from artemis_py.terminal_output import escaped, say_made

HELP: Final = "print a script with which the shell completes words"
_TIMEOUT_S: Final = 1.0
_NAMES_MAX: Final = 200
_TEXT_MAX: Final = 80
_LISTS: Final = {
    "queue": ("queues", "name"),
    "address": ("addresses", "name"),
    "connection": ("connections", "connectionID"),
    "cursor": ("cursors", "name"),
}
"""The argument that names something, its list, and the field with its name."""
_FILE_METAVARS: Final = frozenset({"FILE", "PATH", "DIR", "DIRECTORY", "WHERE"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``completion SHELL``."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")
    parser.epilog = (
        "bash:  echo 'source <(artemis-py completion bash)' >> ~/.bashrc    "
        "zsh:  echo 'source <(artemis-py completion zsh)' >> ~/.zshrc    "
        "fish:  artemis-py completion fish > ~/.config/fish/completions/artemis-py.fish"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the script."""
    say_made(shellcode([PROGRAM], shell=args.shell, complete_arguments=["-o", "nospace"]))
    return 0


def complete(written: str) -> None:
    """Answer the script, which says the rest in the environment, and end the process. ``written``: the line so far."""
    parser = Parser(prog=PROGRAM)
    commands = parser.add_subparsers()
    _, name, *more = [*written.split(), *([""] if written[-1:].isspace() else [])]
    for one, (_, meaning) in COMMANDS.items():
        if more and one != name:
            continue  # it need not be imported
        command = commands.add_parser(one, help=meaning)
        if more:
            command_of(one).add_arguments(command)
            _tell_values(command)
    argcomplete.autocomplete(parser, always_complete_options=False, default_completer=SuppressCompleter())


def _tell_values(parser: argparse.ArgumentParser) -> None:
    """Tell argcomplete how to find the values of arguments."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _tell_values(part)
        elif action.choices is None and (found := _completer_of(action, parser)) is not None:
            vars(action)["completer"] = found


def _completer_of(action: argparse.Action, parser: argparse.ArgumentParser) -> Callable[..., object] | None:
    if action.dest == "context" or (action.dest == "name" and parser.prog.startswith(f"{PROGRAM} context")):
        return _contexts
    if action.dest in _LISTS:
        return _known
    if action.dest in ("sort", "fields", "where"):
        return _fields
    return FilesCompleter() if action.metavar in _FILE_METAVARS else None


def _contexts(**_: object) -> Mapping[str, str]:
    from artemis_py.cli.context import Contexts

    try:
        contexts = Contexts.read()
    except ArtemisError:
        return {}
    return {name: fields.get("url") or fields.get("stomp-url", "") for name, fields in contexts.by_name.items()}


def _known(prefix: str, action: argparse.Action, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Names that the broker knows, if it answers at once."""
    from artemis_py.cli.broker_http import BrokerHttp  # the script alone is printed at the start of each shell

    names = ("url", "context", "user", "password_file", "token_file", "ca_file", "certificate_file", "key_file")
    given = vars(parsed_args)
    args = argparse.Namespace(no_verify=False, **{name: given.get(name) for name in names})
    list_name, field = _LISTS[action.dest]
    query = [("fields", field), ("sort", field), ("size", str(_NAMES_MAX))]
    if prefix and action.dest != "connection":
        query.append(("where", f"{field}~{prefix}"))
    try:
        rows = json.loads(BrokerHttp.of(args, _TIMEOUT_S, asks=False).ask(f"/api/{list_name}?{urlencode(query)}"))[
            "data"
        ]
    except (ArtemisError, ValueError, KeyError, TypeError):
        return []
    return [escaped(str(row[field])) for row in rows]


def _fields(prefix: str, action: argparse.Action, parser: argparse.ArgumentParser, **_: object) -> Mapping[str, str]:
    """The fields of a list; several with commas between in ``--fields``."""
    operation: Any = parser.get_default("operation")
    kind = None if operation is None else operation.lists
    if kind is None:
        return {}
    before, comma, _last = prefix.rpartition(",") if action.dest == "fields" else ("", "", "")
    return {f"{before}{comma}{field.name}": field.sentence[:_TEXT_MAX] for field in kind.fields.values()}
