"""``artemis-py data exp`` and ``imp``: takes messages out of a broker, and brings them into a running one."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.cli.configuration import add_file, add_properties, file_or_default
from artemis_py.cli.logins import URL_NAME, add_http
from artemis_py.errors import ArtemisError, UsageError
from artemis_py.terminal_output import as_json, many, say, say_made, warn

if TYPE_CHECKING:
    from artemis_py.cli.data.import_messages import Import, Imported

HELP: Final = "export the messages of a broker, stopped or running, to a file, and import them into a running one"
_PATIENCE_S: Final = 600.0
"""Beside others who keep a broker busy, a page takes its time."""
_EXIT_DAMAGED: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``exp [FILE] --output OUT``, ``exp --url URL --output OUT`` and ``imp IN [--url URL]``."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="exp|imp")
    out = commands.add_parser(
        "exp",
        help="write the messages of a broker as lines of JSON",
        description="Write the addresses, queues and messages of a broker as lines of JSON, with bodies: of a stopped "
        "one from its files, which are not changed; of a running one with --url, --context or, without a file, "
        "ARTEMIS_PY_URL. Run the same command again to continue an export of a running broker "
        "that was interrupted.",
    )
    add_file(out)
    add_properties(out)
    out.add_argument("--output", metavar="OUT", type=_place, help="the file to write; - is standard output (default)")
    out.add_argument(
        "--queue", action="append", default=[], metavar="NAME", help="only this queue and its messages; may be repeated"
    )
    out.add_argument("--json", action="store_true", help="with a file as --output: print what was done as JSON")
    add_http(out)
    back = commands.add_parser(
        "imp",
        help="put the messages of an export on the queues of a running broker",
        description="Create the addresses and queues of an export that the broker lacks, with their attributes, and "
        "put each message on the queues that it was on. What exists is not changed. Run the same command again to "
        "continue an import that was interrupted.",
    )
    back.add_argument("input", type=Path, metavar="IN", help="a file that exp has written, ours or Artemis'")
    back.add_argument(
        "--queue", action="append", default=[], metavar="NAME", help="only into this one; may be repeated"
    )
    back.add_argument(
        "--no-create",
        action="store_true",
        help="create no addresses and queues; leave out messages of those that the broker lacks",
    )
    back.add_argument("--json", action="store_true", help="print what was done as JSON")
    back.add_argument("--stomp", action=_NotHere, help=argparse.SUPPRESS)
    back.epilog = (
        "exit codes: 0 everything is imported; 1 not everything could be created or imported; 2 the arguments are wrong"
    )
    add_http(back)


def _place(text: str) -> str | None:
    return None if text == "-" else text


class _NotHere(argparse.Action):
    """Tells those who expect the word of other commands about ours."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error(
            "an import is not a SEND: it goes to the HTTP acceptor of a broker, which says what is on its queues; "
            f"write --url URL instead of {self.option_strings[0]}"
        )


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand. Raises ArtemisError, and ConfigError for a broker.xml that is refused."""
    if args.command == "imp":
        return _import(args)
    if args.json and args.output is None:
        raise UsageError("--json reports an export, and standard output is the export itself: add --output FILE")
    is_live = args.url is not None or args.context is not None or (args.file is None and URL_NAME in os.environ)
    return _export_live(args) if is_live else _export(args)


# ---- exp -------------------------------------------------------------------------------------------


def _export(args: argparse.Namespace) -> int:
    from artemis_py.cli.data.export_stopped import Directories, StoppedBroker, export, writing
    from artemis_py.config.reader import load
    from artemis_py.storage.disk.lock import DirectoryLock

    config = load(file_or_default(args.file, "data exp"), properties=args.properties)
    directories = Directories(
        Path(config.journal_directory), Path(config.paging_directory), Path(config.large_messages_directory)
    )
    if not directories.journal.is_dir():
        raise ArtemisError(f"{directories.journal} is not a directory: has this broker ever run with persistence?")
    wanted = frozenset(args.queue)

    async def go() -> None:
        async with writing(args.output) as file:
            with _progress("messages", broker.count) as progress:
                done = await export(broker, config.name, file, wanted, progress)
        _tell_exported(args, done.messages, done.body_bytes, 0, [f"DAMAGED {damage}" for damage in broker.damages])

    lock = DirectoryLock(directories.journal.resolve())
    try:
        with _progress("files of the journal", 0) as reading:
            broker = StoppedBroker(directories, lambda done, _total: reading(done))
        unknown = wanted - {str(queue["name"]) for queue in broker.queues}
        if unknown:
            raise ArtemisError(f"there is no queue {', '.join(sorted(unknown))} in {directories.journal}")
        asyncio.run(go())
    finally:
        lock.release()
    return _EXIT_DAMAGED if broker.damages else 0


def _export_live(args: argparse.Namespace) -> int:
    from artemis_py.cli.data.export_running import LiveExport, Noted, Part, ToStdout

    if args.file is not None:
        raise ArtemisError(f"{args.file} is for a stopped broker, and --url and --context for a running one: give one")
    broker = BrokerHttp.of(args, _PATIENCE_S)
    wanted = sorted(set(args.queue))
    if args.output is None:
        part, done = None, Noted(broker.url, wanted)
    else:
        part = Part(Path(args.output))
        done = part.read(broker.url, wanted)
    before = done.messages
    try:
        with _progress("messages", 0) as progress:
            LiveExport(broker, part or ToStdout(), done, progress).run()
        if part is not None:
            part.finish()
    except ArtemisError as error:
        if part is None or not part.is_noted:
            raise
        raise ArtemisError(f"{error}; run the same command again to continue") from None
    finally:
        if part is not None:
            part.close()
    notes = [f"queue {name} was deleted meanwhile" for name in done.gone]
    notes += [f"MISSING queue {name}: you may not browse it" for name in done.denied]
    notes += [
        f"UNSURE queue {name}: messages came back to it all the time, and some of those may be missing"
        for name in done.unsure
    ]
    _tell_exported(args, done.messages, done.body_bytes, before, notes)
    return _EXIT_DAMAGED if done.denied or done.unsure else 0


def _tell_exported(
    args: argparse.Namespace, messages: int, body_bytes: int, messages_before: int, notes: list[str]
) -> None:
    """Say what an export has done. ``messages`` are all that the file has."""
    if args.json:
        told = {"messages": messages, "bodyBytes": body_bytes, "messagesBefore": messages_before, "notes": notes}
        say_made(as_json({"output": args.output, **told}))
        return
    if messages_before:
        warn(f"continued after {many(messages_before, 'message')} that were exported before")
    where = "" if args.output is None else f" to {args.output}"
    warn(f"exported {many(messages, 'message')}{where} ({body_bytes:,} bytes of bodies)")
    for note in notes:
        warn(note)


# ---- imp -------------------------------------------------------------------------------------------


def _import(args: argparse.Namespace) -> int:
    from artemis_py.cli.data.import_messages import Import

    broker = BrokerHttp.of(args, _PATIENCE_S)
    try:
        size_bytes = args.input.stat().st_size
    except OSError as error:
        raise ArtemisError(f"{args.input}: {error.strerror or error}") from None
    with _progress("bytes", size_bytes) as progress:
        one = Import(args.input, broker, frozenset(args.queue), progress, creates=not args.no_create)
        before, done = one.run()
    return _tell_imported(args, one, before, done, broker.url)


def _tell_imported(args: argparse.Namespace, one: Import, before: Imported, done: Imported, url: str) -> int:
    """Say what an import has done. Returns the exit code."""
    made = 0 if one.maker is None else one.maker.made
    notes = _notes_of(one, done)
    if args.json:
        told = {"messages": done.messages, "places": done.places, "knownPlaces": done.known, "queuesMade": made}
        say_made(
            as_json(
                {"url": url, **told, "messagesBefore": before.messages, "messageCounts": done.depths, "notes": notes}
            )
        )
        return _EXIT_DAMAGED if notes else 0
    if before.lines:
        say(f"continued after line {before.lines}: {many(before.messages, 'message')} were imported before")
    known = f" ({many(done.known, 'place')} got them in an earlier import)" if done.known else ""
    also = "" if one.maker is None else f", and made {many(made, 'queue')}"
    say(f"imported {many(done.messages, 'message')} into {many(done.places, 'place')} on queues of {url}{known}{also}")
    for note in notes:
        warn(note)
    return _EXIT_DAMAGED if notes else 0


def _notes_of(one: Import, done: Imported) -> list[str]:
    """What is not as in the export."""
    notes: list[str] = []
    refused = {} if one.maker is None else one.maker.refused
    for name in sorted(done.left_out.keys() | refused.keys()):
        count = done.left_out[name]
        why = done.reasons.get(name) or refused.get(name)
        left = f"{many(count, 'message')} of it {'was' if count == 1 else 'were'} not imported"
        notes.append(f"MISSING queue {name}: {why}; {left} (later: --queue {name})")
    for name, count in sorted(done.replaced.items()):
        notes.append(
            f"REPLACED queue {name}: {many(count, 'message')} gave way when others came, as its ring-size, max-depth "
            f"or last-value-key says; it has {done.depths.get(name, 0):,} now"
        )
    for name, count in sorted(done.unsure.items()):
        if done.depths.get(name, 0) < count:
            notes.append(
                f"UNSURE queue {name}: {many(count, 'place')} got them in an earlier import, and it has "
                f"{done.depths.get(name, 0):,} now; consumers may have taken the others, or its ring-size, max-depth "
                "or last-value-key may have made them give way"
            )
    for kind, count in sorted(one.opaque.items()):
        notes.append(
            f"OPAQUE {many(count, 'message')} of the type {kind}: the {'body is' if count == 1 else 'bodies are'} in "
            "an encoding of Java's, which clients of STOMP cannot read"
        )
    for name, count in sorted(done.transient.items()):
        goes = "goes" if count == 1 else "go"
        notes.append(
            f"NOT DURABLE queue {name}: {many(count, 'persistent message')} of it {goes} when the broker stops, "
            "because the queue is not durable there; declare it durable, and import again"
        )
    if one.maker is not None:
        notes += one.maker.problems
    return notes + [
        f"{name.replace('.', ' ', 1)} was paused or disabled, and may not be so now" for name in done.unsettled
    ]


# ---- progress --------------------------------------------------------------------------------------


class Bar(Protocol):
    """Shows how much is done, and of how much, if that is known only now."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """So much."""


@contextmanager
def _progress(what: str, total: int) -> Iterator[Bar]:
    """A bar on a terminal; elsewhere nothing is shown. ``total`` 0: it is unknown."""
    if not sys.stderr.isatty():
        yield lambda _done, _total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.description}"), BarColumn()
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=max(total, 1))
        yield lambda done, total=None: bar.update(task, completed=done, total=total)
