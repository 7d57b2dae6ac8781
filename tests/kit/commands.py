"""The commands of the program, as their parsers know them."""

from __future__ import annotations

from argparse import ArgumentParser, _SubParsersAction

from artemis_py.cli.main import command_of


def parsers_of(name: str) -> dict[str, ArgumentParser]:
    """The parser of a command, and those of the commands below it, by their words."""
    first = ArgumentParser(prog=name)
    command_of(name).add_arguments(first)
    found = [(name, first)]
    for words, parser in found:  # it grows meanwhile
        for action in parser._actions:
            if isinstance(action, _SubParsersAction):
                found += [(f"{words} {word}", below) for word, below in action.choices.items()]
    return dict(found)
