"""Finds the command and runs it. Imports only the module of the command asked for: start-up must stay fast."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

from artemis_py.errors import ArtemisError, ConfigError
from artemis_py.version import IS_COMPILED, VERSION

PROGRAM: Final = "artemis-py"
EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_REFUSED: Final = 2
EXIT_INTERRUPTED: Final = 130

# name -> (module, its HELP): repeated here so that listing the commands imports none of them.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "run": ("artemis_py.cli.run", "start the broker on a broker.xml, in the foreground"),
    "check": ("artemis_py.cli.check", "report every problem of a broker.xml"),
    "explain": ("artemis_py.cli.explain", "show where each setting of an address or queue comes from"),
    "perf": ("artemis_py.cli.perf", "measure a STOMP broker"),
    "journal": ("artemis_py.cli.journal", "verify or dump the journal files of a stopped broker"),
    "pipeline": ("artemis_py.cli.pipeline", "analyse, archive or replay the broker's log, on Spark"),
    "cursors": ("artemis_py.cli.cursors", "list or drop the cursors in a broker's log"),
    "pages": ("artemis_py.cli.pages", "list the pages of a stopped broker, and what is in them"),
}


class Command(Protocol):
    """What a module of a command offers."""

    HELP: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def usage() -> str:
    """The text of ``artemis-py help``."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_module, text) in COMMANDS.items()]
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND …",
            "",
            *lines,
            "",
            f"{PROGRAM} COMMAND --help  the arguments of a command",
            f"{PROGRAM} --version       the version",
        ]
    )


def nearest(name: str) -> str | None:
    """The command that looks most like ``name``, or None when none does."""
    import difflib

    found = difflib.get_close_matches(name, COMMANDS, n=1)
    return found[0] if found else None


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Imports the command, parses its arguments and runs it. Raises what the command raises."""
    command = cast(Command, importlib.import_module(COMMANDS[name][0]))
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} {name}", description=command.HELP)
    command.add_arguments(parser)
    return command.run(parser.parse_args(arguments))


def dispatch(arguments: Sequence[str]) -> int:
    """Answers help and version itself, refuses unknown commands, hands over the rest."""
    if not arguments:
        print(usage(), file=sys.stderr)
        return EXIT_REFUSED
    name, *rest = arguments
    if name in COMMANDS:
        return run_command(name, rest)
    if name in ("--version", "-V"):
        print(f"{PROGRAM} {VERSION} ({'compiled' if IS_COMPILED else 'interpreted'})")
        return EXIT_OK
    if name in ("help", "--help", "-h"):
        if rest and rest[0] in COMMANDS:
            return run_command(rest[0], ["--help"])
        print(usage())
        return EXIT_OK
    guess = nearest(name)
    hint = f"did you mean {guess!r}?" if guess else f"the commands are {', '.join(COMMANDS)}"
    print(f"{PROGRAM}: unknown command {name!r}; {hint}", file=sys.stderr)
    return EXIT_REFUSED


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; user errors become text on standard error, never a traceback."""
    try:
        code = dispatch(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except ConfigError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        return EXIT_REFUSED
    except ArtemisError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`artemis-py … | head`). Python flushes once more at exit: give that a place to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return code
