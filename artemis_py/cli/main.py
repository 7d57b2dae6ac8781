"""Finds the command and runs it. Imports only the module of the command asked for: start-up must stay fast."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol, cast

from artemis_py.cli import EXIT_INTERRUPTED, PROGRAM, end_at_once
from artemis_py.errors import AdviceError, ArtemisError, ConfigError, UsageError
from artemis_py.terminal_output import as_called, say, say_made, warn, warn_made
from artemis_py.version import IS_COMPILED, VERSION

if TYPE_CHECKING:
    import argparse

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_REFUSED: Final = 2

_ASKING: Final = "_ARGCOMPLETE"
"""A script of ``completion`` asks: what is written is in ``COMP_LINE``."""
_OPERATIONS: Final = "artemis_py.cli.operations"

# name -> (module, its HELP): repeated here so that listing the commands imports none of them.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "run": ("artemis_py.cli.run", "start the broker on a broker.xml or an Artemis instance, in the foreground"),
    "check": ("artemis_py.cli.check", "report every problem of a broker.xml or an Artemis instance"),
    "explain": ("artemis_py.cli.explain", "show where each setting of an address or queue comes from"),
    "diff": ("artemis_py.cli.diff", "show what another configuration would change, and what would need a restart"),
    "health": ("artemis_py.cli.health", "ask a running broker whether it takes messages"),
    "init": ("artemis_py.cli.init", "write a commented broker.xml to start with"),
    "context": ("artemis_py.cli.context", "name brokers, and choose the one that commands ask"),
    "send": ("artemis_py.cli.send", "send messages to an address of a running broker"),
    "receive": ("artemis_py.cli.receive", "take messages from a queue of a running broker, and print them"),
    "browse": (
        "artemis_py.cli.browse",
        "print the messages of a queue of a running broker, and leave them there",
    ),
    "top": ("artemis_py.cli.top", "watch the queues of a running broker, by rate or depth"),
    "broker": (
        _OPERATIONS,
        "show a running broker, its disks, journal and configuration; reload, and compact the journal",
    ),
    "queue": (
        _OPERATIONS,
        "list, show, browse, create, change, purge and delete queues of a running broker, and move messages",
    ),
    "message": (_OPERATIONS, "show, move, copy, retry and remove single messages of a queue"),
    "dead": (_OPERATIONS, "list dead and expired messages by where they came from, and send them back there"),
    "job": (_OPERATIONS, "list background jobs, and stop them"),
    "schedule": (_OPERATIONS, "list the messages that a running broker sends again and again, and cancel them"),
    "address": (
        _OPERATIONS,
        "list, show, create, change, pause, block, purge and delete the addresses of a running broker",
    ),
    "consumer": (_OPERATIONS, "list the consumers of a running broker, and close them"),
    "why": (_OPERATIONS, "say why a running broker does not do what you expect, with the setting and a remedy"),
    "connection": (_OPERATIONS, "list the clients of a running broker, and close their connections"),
    "session": (_OPERATIONS, "list the sessions of a running broker, and close them"),
    "producer": (_OPERATIONS, "list who has sent to which address of a running broker"),
    "transaction": (_OPERATIONS, "list the open transactions of a running broker, roll them back, or commit them"),
    "acceptor": (_OPERATIONS, "list the acceptors of a running broker"),
    "bridge": (_OPERATIONS, "list, start and stop the bridges of a running broker"),
    "divert": (_OPERATIONS, "list, create, change and destroy the diverts of a running broker"),
    "log": (_OPERATIONS, "list the files of the log of a running broker"),
    "settings": (_OPERATIONS, "show and change the settings in force in a running broker, and show who may do what"),
    "events": ("artemis_py.cli.events", "print what happens in a running broker"),
    "user": ("artemis_py.cli.user", "add, list, change, remove and test users"),
    "mask": ("artemis_py.cli.mask", "print the hash of a password, for a users file"),
    "perf": ("artemis_py.cli.perf", "measure a STOMP broker"),
    "journal": ("artemis_py.cli.journal", "verify, repair or dump the journal files of a stopped broker"),
    "pipeline": ("artemis_py.cli.pipeline", "analyse, archive or replay the broker's log, on Spark"),
    "trace": ("artemis_py.cli.trace", "tell the life of a message, from the log"),
    "simulate": ("artemis_py.cli.simulate", "compute when a configuration would page, block, drop or expire"),
    "spans": ("artemis_py.cli.spans", "print or export the traces of messages, from the log"),
    "cursor": (
        "artemis_py.cli.cursor",
        "list or remove the cursors in the log of a running broker, or in the files of a stopped one",
    ),
    "test-broker": (
        "artemis_py.cli.test_broker",
        "start a broker for the tests of a program in any language, on a free port",
    ),
    "ha": ("artemis_py.cli.ha", "try whether two brokers can share a directory"),
    "completion": ("artemis_py.cli.completion", "print a script with which the shell completes words"),
    "data": (
        "artemis_py.cli.data.command",
        "export the messages of a broker, stopped or running, to a file, and import them into a running one",
    ),
    "pages": ("artemis_py.cli.pages", "list the pages of a stopped broker and their messages"),
}


class Command(Protocol):
    """The interface of a command's module."""

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
            f"{PROGRAM} COMMAND --help  show the arguments of a command",
            f"{PROGRAM} --version       show the version",
        ]
    )


def nearest(name: str) -> str | None:
    """The command most similar to ``name``, or None."""
    import difflib

    found = difflib.get_close_matches(name, COMMANDS, n=1)
    return found[0] if found else None


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Imports the command, parses its arguments and runs it. Raises what the command raises."""
    with _interrupted_at_once(at_the_end=name == "run"):
        from artemis_py.cli.options import Parser

        command = command_of(name)
        parser = Parser(prog=f"{PROGRAM} {name}", description=command.HELP)
        command.add_arguments(parser)
        parsed = _parsed(parser, arguments)
        if name == "run":  # until the broker handles signals, and collects garbage, itself
            return command.run(parsed)
    gc.enable()
    return command.run(parsed)


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Options may stand between all words, also before one that may be left out (``send orders --count 5 hello``)."""
    if "--" not in arguments:  # argparse would take it for a word
        with suppress(TypeError):  # commands with commands of their own: argparse says so before it parses
            return parser.parse_intermixed_args(arguments)
    return parser.parse_args(arguments)


def command_of(name: str) -> Command:
    """The command of this name, which is imported."""
    import importlib

    place, help = COMMANDS[name]
    module = importlib.import_module(place)
    return cast(Command, module.Operating(name, help) if place == _OPERATIONS else module)


@contextmanager
def _interrupted_at_once(*, at_the_end: bool) -> Iterator[None]:
    """Make Ctrl-C end the process with one line before the command begins: a KeyboardInterrupt during an import would
    print a traceback. With ``at_the_end``, Ctrl-C prints nothing afterwards.
    """
    try:
        end_at_once()
    except ValueError:  # not the main thread: somebody else's program
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if at_the_end else signal.default_int_handler)


def dispatch(arguments: Sequence[str]) -> int:
    """Answers help and version, refuses unknown commands, passes on the rest."""
    if _ASKING in os.environ and "COMP_LINE" in os.environ:
        complete: Callable[[str], None] = vars(command_of("completion"))["complete"]
        complete(os.environ["COMP_LINE"])
    if not arguments:
        warn_made(usage())
        return EXIT_REFUSED
    name, *rest = arguments
    if name in COMMANDS:
        return run_command(name, rest)
    if name in ("--version", "-V"):
        say(f"{PROGRAM} {VERSION} ({'compiled' if IS_COMPILED else 'interpreted'})")
        return EXIT_OK
    if name in ("help", "--help", "-h"):
        if rest and rest[0] in COMMANDS:
            return run_command(rest[0], ["--help"])
        say_made(usage())
        return EXIT_OK
    guess = nearest(name)
    hint = f"did you mean {guess!r}?" if guess else f"the commands are {', '.join(COMMANDS)}"
    warn(f"{PROGRAM}: unknown command {name!r}; {hint}")
    return EXIT_REFUSED


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; user errors become text on standard error, never a traceback."""
    try:
        code = dispatch(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except ConfigError as error:
        for problem in error.problems:
            warn(as_called(str(problem)))
        return EXIT_REFUSED
    except ArtemisError as error:
        warn(f"{PROGRAM}: {as_called(str(error))}")
        if isinstance(error, AdviceError):
            warn_made(as_called(error.advice))
        return EXIT_REFUSED if isinstance(error, UsageError) else EXIT_FAILED
    except KeyboardInterrupt:
        warn(f"{PROGRAM}: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`artemis-py … | head`). Python flushes once more at exit: give that a place to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return code
