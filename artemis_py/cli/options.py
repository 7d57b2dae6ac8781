"""How commands read their arguments, and options that many have: numbers, ``--json``."""

from __future__ import annotations

import argparse
from typing import Final, NoReturn

from artemis_py.terminal_output import warn
from artemis_py.units import parse_decimal

JSON: Final = "json"


_ALIKE: Final = {"list": "ls", "ls": "list"}


class Parser(argparse.ArgumentParser):
    """Says in two lines what is wrong with arguments. Where there is only one of ``list`` and ``ls``, it takes either
    for it.
    """

    _chosen: argparse.ArgumentParser | None = None
    """That of the word that somebody has written."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if not isinstance(action, argparse._SubParsersAction) or value in action.choices:
            super()._check_value(action, value)
            self._chosen = (
                action.choices[str(value)] if isinstance(action, argparse._SubParsersAction) else self._chosen
            )
            return
        alike = _ALIKE.get(str(value))
        if alike in action.choices:
            action.choices[str(value)] = action.choices[alike]
            action.choices[alike].set_defaults(**{action.dest: alike})
            return
        from difflib import get_close_matches

        guess = get_close_matches(str(value), action.choices, n=1)
        hint = f"did you mean {guess[0]!r}?" if guess else f"the words are {', '.join(action.choices)}"
        raise argparse.ArgumentError(None, f"unknown word {value!r}; {hint}")

    def _other_acceptor(self, message: str) -> str:
        """Which option names the broker here, if somebody has used that of commands that talk to its other acceptor;
        else the one that is nearest.
        """
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown == message:
            return ""
        wrong = {word.partition("=")[0] for word in unknown.split()}
        options = _options_of(self)
        if "--url" in wrong and "--stomp" in options:
            return "; this command talks STOMP, so name that acceptor: --stomp stomp://host:port"
        if "--stomp" in wrong and "--url" in options:
            return "; this command talks HTTP, so name that acceptor: --url http://host:port"
        return _nearest(wrong, _options_of(self._chosen or self))

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit code 2."""
        warn(f"{self.prog}: {message}{self._other_acceptor(message)}")
        warn(f"{self.prog} --help shows the arguments")
        self.exit(2)


def _nearest(words: set[str], options: set[str]) -> str:
    """Which options are most like those that nobody knows."""
    from difflib import get_close_matches

    wrong = [word for word in sorted(words) if word.startswith("--")]
    near = [option for word in wrong for option in get_close_matches(word, options, n=1)]
    return f"; did you mean {' '.join(near)}?" if near else ""


def _options_of(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a parser and of those of its words."""
    options = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            options.update(*(_options_of(part) for part in action.choices.values()))
    return options


def count(text: str) -> int:
    """How many, 0 or more. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"a count must be 0 or more, not {text!r}")
    return int(text)


def count_from_one(text: str) -> int:
    """How many, 1 or more. Raises ArgumentTypeError."""
    if not count(text):
        raise argparse.ArgumentTypeError("a count must be 1 or more, not 0")
    return int(text)


def seconds(text: str) -> float:
    """How long, 0 or more. Raises ArgumentTypeError."""
    try:
        value = parse_decimal(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, 0 or more, not {text!r}")
    return value


def moment(text: str, now_ms: int) -> int:
    """A time as epoch milliseconds, also one before now. Raises ArgumentTypeError."""
    from artemis_py.spark.jobs.source import moment_ms

    try:
        return moment_ms(text, now_ms)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def role_names(text: str) -> list[str]:
    """The roles in an argument, blanks around them removed."""
    return [role.strip() for role in text.split(",") if role.strip()]


def add_json(arguments: argparse._ActionsContainer, help: str, *, people: str = "text") -> None:
    """Add ``--json``, as all commands have it, and ``--format``, which says the same at greater length: ``people`` or
    ``json``. Both set ``format``.
    """
    arguments.add_argument(
        "--json", dest="format", action="store_const", const=JSON, default=people, help=f"print JSON: {help}"
    )
    arguments.add_argument(
        "--format", choices=(people, JSON), default=people, help=f"--format {JSON} is the same as --json"
    )
