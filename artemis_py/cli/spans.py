"""``artemis-py spans``: traces of messages, made from the log and sent to a collector."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from artemis_py.cli import EXIT_INTERRUPTED
from artemis_py.cli.logins import HTTP_HELP, add_access, http_acceptor
from artemis_py.cli.options import add_json, moment
from artemis_py.errors import ArtemisError
from artemis_py.spark.jobs.source import FORMS
from artemis_py.spark.log.http import Broker, HttpLog
from artemis_py.spark.log.log import AwayError
from artemis_py.spark.runtime.command import Progress
from artemis_py.storage.retention.cursors import check_name
from artemis_py.terminal_output import as_json, many, say, say_made, warn
from artemis_py.tracing.export import OPEN_S_MAX, Collector, Cursor, Export
from artemis_py.tracing.journeys import FinishedSpan, Journeys
from artemis_py.tracing.reading import BrokerSource, DirectorySource
from artemis_py.tracing.source import Beginning, LogSource

HELP: Final = "print or export the traces of messages, from the log"
_BROKER_S: Final = 5
_FOLLOWED_S: Final = 1
_COLUMNS: Final = f"{'start (UTC)':<23}  {'ms':>10}  {'trace':<32}  {'span':<16}  {'parent':<16}  {'outcome':<10}  name"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.epilog = "docs/tracing.md has examples"
    source = parser.add_argument_group("the log")
    source.add_argument("--url", help=f"a running broker, by its {HTTP_HELP}")
    add_access(source)
    source.add_argument(
        "--journal", metavar="DIR", type=Path, action="extend", nargs="+", default=[],
        help="instead of a running broker: journal and retention directory of one, which may be stopped",
    )  # fmt: skip
    now = partial(moment, now_ms=time.time_ns() // 1_000_000)
    source.add_argument(
        "--from", dest="from_ms", type=now, metavar="TIME", default=0, help=f"leave out earlier messages: {FORMS}"
    )
    source.add_argument("--follow", action="store_true", help="continue until Ctrl-C; needs a running broker")
    source.add_argument("--cursor", metavar="NAME", help="remember the place on the running broker, and continue there")
    output = parser.add_argument_group("the spans")
    output.add_argument(
        "--otlp", metavar="URL", help="send them to this collector, such as http://127.0.0.1:4318/v1/traces"
    )
    add_json(output, "one object per line, without --otlp", people="table")


def run(args: argparse.Namespace) -> int:
    """Prints or sends the spans. Raises ArtemisError if the log cannot be read or the collector refuses them."""
    _check(args)
    with ExitStack() as stack:
        source, cursor = _opened(args)
        stack.callback(source.close)
        after_lsn, told_lsn, beginning = _begun(source, cursor, args)
        journeys = Journeys(beginning.log, after_lsn=after_lsn, from_ms=args.from_ms, told_lsn=told_lsn)
        for fields in beginning.queues:
            if fields.get("name"):
                journeys.know_queue(fields)
        if args.otlp:
            collector = Collector(args.otlp, beginning.broker, beginning.log)
            stack.callback(collector.close)
            sink = collector.send
        else:
            sink = _print_json if args.format == "json" else _print_table
            if args.format == "table":
                say(_COLUMNS)
        export = Export(source, journeys, sink, warn, cursor, waits=args.follow)
        if args.otlp or not sys.stdout.isatty():
            progress = stack.enter_context(Progress(sys.stderr, "reading the log"))
            export.tell, export.show = progress.tell, progress.say
        if after_lsn:
            export.tell(f"continuing behind lsn {after_lsn}, where cursor {args.cursor} is")
        _carry_out(export, follows=args.follow)
    _sum_up(export, is_sent=bool(args.otlp))
    if export.is_stopped and not args.follow:
        warn("interrupted: the rest of the log was not read")
        return EXIT_INTERRUPTED
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.journal and (args.url or args.context):
        raise ArtemisError("give one place of the log: --journal DIR …, or a broker by --url or --context")
    if args.journal and (args.follow or args.cursor):
        raise ArtemisError(
            "--follow and --cursor do not go with --journal: only a running broker has cursors and adds to the log"
        )
    for directory in args.journal:
        if not directory.is_dir():
            raise ArtemisError(f"{directory} is not a directory")
    if args.cursor:
        check_name(args.cursor)


def _opened(args: argparse.Namespace) -> tuple[LogSource, Cursor | None]:
    if args.journal:
        return DirectorySource(args.journal), None
    broker = Broker(*http_acceptor(args, args.url), _FOLLOWED_S if args.follow else _BROKER_S)
    log = HttpLog(broker, "spans")
    return BrokerSource(log), Cursor(log, args.cursor) if args.cursor else None


def _begun(source: LogSource, cursor: Cursor | None, args: argparse.Namespace) -> tuple[int, int, Beginning]:
    """Where to read from, how far everything was sent, and the log. Following, it waits for a broker that is away."""
    is_told = False
    while True:
        try:
            after_lsn, told_lsn = (0, 0) if cursor is None else cursor.known()
            return after_lsn, told_lsn, source.begin(after_lsn, args.from_ms)
        except AwayError as error:
            if not args.follow:
                raise
            if not is_told:
                warn(f"waiting: {error}")
            is_told = True


def _carry_out(export: Export, *, follows: bool) -> None:
    """Export until there is no more, or until somebody ends it (Ctrl-C, SIGTERM). The signal is only noted: an
    exception raised by it could end in a library that drops it, and the command would go on.
    """

    def stop(number: int, _frame: object) -> None:
        export.stop()
        signal.signal(number, signal.default_int_handler)  # the second one does not wait

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if follows:
            export.follow()
        else:
            export.once()
        export.finish()
    except AwayError as error:
        if not export.is_stopped:
            raise
        export.tell(f"the cursor stays where it is, so the last spans will be sent again: {error}")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _sum_up(export: Export, *, is_sent: bool) -> None:
    """What became of it, on standard error."""
    journeys = export.journeys
    done = "sent" if is_sent else "printed"
    parts = [f"{many(export.sent, 'span')} {done}", f"{many(journeys.open, 'message')} still in queues"]
    if export.unsent:
        parts.append(f"{many(export.unsent, 'span')} not {done}")
    if journeys.given_up:
        parts.append(f"{many(journeys.given_up, 'message')} given up (too many, or over {OPEN_S_MAX // 3600} h)")
    warn("; ".join(parts))
    if export.source.lost:
        warn("retention had removed parts of the log before they were read: spans of that time are missing")
    for damage in export.source.damages:
        warn(damage)


def _print_json(spans: Sequence[FinishedSpan]) -> None:
    for span in spans:
        say_made(as_json(span.fields()))
    sys.stdout.flush()


def _print_table(spans: Sequence[FinishedSpan]) -> None:
    for span in spans:
        parent = span.parent
        outcome = span.attributes.get("artemis.reason") or span.attributes.get("artemis.cause", "")
        say(
            f"{_clock(span.start_ms)}  {span.end_ms - span.start_ms:>10}  {parent.trace_id}  {span.span_id}  "
            f"{parent.span_id}  {outcome:<10}  {span.name}"
        )
    sys.stdout.flush()


def _clock(time_ms: int) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(time_ms // 1000))}.{time_ms % 1000:03}"
