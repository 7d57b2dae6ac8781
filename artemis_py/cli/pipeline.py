"""``artemis-py pipeline NAME``: jobs over the broker's log, on Spark."""

from __future__ import annotations

import argparse
import re
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.cli import logins
from artemis_py.cli.options import JSON, add_json, moment
from artemis_py.client.http_connection import is_http_url
from artemis_py.errors import UsageError
from artemis_py.spark.jobs.archived import ArchiveTables
from artemis_py.spark.jobs.result import NUMBERS, shown
from artemis_py.spark.jobs.source import FORMS, Call, LogTables, Source, Span, is_url, moment_ms
from artemis_py.terminal_output import BOLD, painter, say, say_made
from artemis_py.text_table import Column, print_table
from artemis_py.units import parse_decimal, parse_ms

if TYPE_CHECKING:
    from artemis_py.spark.jobs.result import Result, Table
    from artemis_py.spark.runtime.command import Progress

HELP: Final = "analyse, archive or replay the broker's log, on Spark"
_BROKER_TIMEOUT_S: Final = 10
"""Shorter than for an unattended query, because a person waits."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``NAME`` and the arguments of all jobs."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(map(len, JOBS))
    listing = "\n".join(f"  {name:<{width}}  {job.help}" for name, job in JOBS.items())
    parser.usage = "%(prog)s NAME …"
    parser.description = f"{HELP}\n\njobs:\n{listing}"
    parser.epilog = "artemis-py pipeline NAME --help shows the arguments of a job; docs/spark-jobs.md has examples"
    commands = parser.add_subparsers(
        dest="job", required=True, metavar="NAME", help=argparse.SUPPRESS, prog=parser.prog
    )
    for name, job in JOBS.items():
        one = commands.add_parser(name, description=job.help)
        job.add_arguments(one)
        _add_common(one)


def _add_common(parser: argparse.ArgumentParser) -> None:
    source = parser.add_argument_group("the log")
    source.add_argument(
        "--journal", metavar="DIR", action="append", help="journal or retention directory; may be repeated"
    )
    source.add_argument(
        "--url", metavar="URL", action="append", help="a running broker, http://host:8161; may be repeated"
    )
    source.add_argument(
        "--context",
        metavar="NAME",
        help="a running broker, and its login, by the name of its context (artemis-py context ls)",
    )
    source.add_argument(
        "--archive", metavar="DIR", type=_place, help=("an archive that the job archive wrote"), dest="archived"
    )
    source.add_argument(
        "--storage",
        metavar="NAME=VALUE",
        type=_pair,
        action="append",
        default=[],
        help="an option of the object store of s3://…, such as AWS_ENDPOINT_URL=…; others are of the environment",
    )
    logins.add_login(source)
    source.add_argument("--password", metavar="TEXT", help="the password; others see it in the list of processes")
    logins.add_tls(source)
    now = partial(moment, now_ms=_now_ms())
    source.add_argument("--from", dest="from_ms", type=now, metavar="TIME", help=f"start, inclusive: {FORMS}")
    source.add_argument("--to", dest="to_ms", type=now, metavar="TIME", help="end, exclusive")
    source.add_argument("--addresses", metavar="NAMES", help="only these addresses, separated by commas")
    output = parser.add_argument_group("the result")
    add_json(output, "nothing else is on standard output", people="table")
    output.add_argument("--parquet", metavar="DIR", type=Path, help="write all rows as Parquet files")
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", default="local[*,3]", help="a cluster, spark://host:7077 (default: this machine)")
    spark.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a Spark setting; may be repeated",
    )
    spark.add_argument(
        "--step-back",
        action=argparse.BooleanOptionalAction,
        help="let all other processes of this machine go first (default: if standard output is a terminal)",
    )
    spark.add_argument("--verbose", action="store_true", help="show the output of Spark and Java")


def _place(text: str) -> Path | str:
    text = text.removeprefix("file://")
    return text.rstrip("/") if is_url(text) else Path(text)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _period_ms(text: str) -> int:
    try:
        value = parse_ms(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(f"{problem}; write 10m, 90s or 2h") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is less than nothing")
    return value


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a Spark setting; write NAME=VALUE, such as spark.executor.memory=4g"
        )
    return name, value


def run(args: argparse.Namespace) -> int:
    """Runs one job and shows its result. Raises ArtemisError if pyspark is missing or the job fails."""
    from artemis_py.spark.runtime.command import Progress, own_stream
    from artemis_py.spark.runtime.sessions import require_packages

    source = source_of(args)
    require_packages()
    source.check()
    caveats = source.caveats()
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(own_stream(sys.stderr)))
        result = _result(args, source, stack, progress)
    result.notes = [*result.notes, *caveats]
    if args.format == JSON:
        say_made(result.as_json())
    else:
        _print(result)
    return result.exit_code


def source_of(args: argparse.Namespace) -> Source:
    """The log that the arguments name. Raises UsageError if they name none or more than one."""
    if args.context and not (args.journal or args.archived):
        args.url = [logins.url_for(args, None if args.url is None else args.url[0]), *(args.url or ())[1:]]
    given = [name for name in ("journal", "url", "archived") if getattr(args, name)]
    if len(given) != 1 or (args.context and not args.url):
        said = "only one of these" if given else "the place of the log"
        raise UsageError(f"give {said}: --journal DIR, --url http://HOST:PORT, --context NAME or --archive DIR")
    for url in args.url or ():
        for acceptor in re.split(r"[,|]", url):
            if not is_http_url(acceptor.strip()):
                raise UsageError(f"{acceptor} is not the URL of an HTTP acceptor; write http://host:port")
    if args.from_ms is not None and args.to_ms is not None and args.from_ms >= args.to_ms:
        raise UsageError("--from must be before --to")
    span = Span(args.from_ms, args.to_ms)
    addresses = tuple(name.strip() for name in (args.addresses or "").split(",") if name.strip())
    if args.archived is not None:
        return ArchiveTables(args.archived, span, addresses, dict(args.storage))
    options = {given[0]: ",".join(getattr(args, given[0]))}
    if args.url:
        options["brokerTimeoutSeconds"] = str(_BROKER_TIMEOUT_S)
    if addresses:
        options["subscribe"] = ",".join(addresses)
    if args.url:
        options |= logins.spark_options(args)
        if args.password:
            options["password"] = args.password
    return LogTables(options, span)


def _result(args: argparse.Namespace, source: Source, stack: ExitStack, progress: Progress) -> Result:
    from artemis_py.spark.runtime.command import quiet_session, told_errors

    steps_back = sys.stdout.isatty() if args.step_back is None else args.step_back
    steps_back = steps_back and args.master.startswith("local")
    conf = dict(args.conf)
    spark = stack.enter_context(quiet_session(args.master, conf, steps_back=steps_back, is_verbose=args.verbose))
    progress.watch(spark, steps_back=steps_back)
    with told_errors(spark):
        result = JOBS[args.job].call(Call(spark, source, progress.say, progress.tell), args)
        if args.parquet is not None:
            progress.say(f"writing {args.parquet}")
            result.write_parquet(args.parquet)
    if result.tables and not any(table.rows for table in result.tables):
        result.notes = [*result.notes, f"no results in {source.extent()}"]
    return result


def _print(result: Result) -> None:
    say_made(painter(sys.stdout)(BOLD, result.title))
    for column, value in result.facts:
        say(f"  {column.title}: {shown(column.kind, value)}")
    for table in result.tables:
        say()
        say(table.title if table.rows else f"{table.title}: nothing")
        if table.rows:
            _print_table(table)
    for note in result.notes:
        say(f"note: {note}")


def _print_table(table: Table) -> None:
    columns = [(place, column) for place, column in enumerate(table.columns) if _says_something(table, place)]
    rows = table.rows[: table.printed_max]
    print_table(
        [Column(column.title, is_number=column.kind in NUMBERS) for _, column in columns],
        ([shown(column.kind, row[place]) for place, column in columns] for row in rows),
    )
    rest = len(table.rows) - len(rows) + table.missing
    if rest:
        say(f"and {rest:,} more; --parquet and --json have them")


def _says_something(table: Table, place: int) -> bool:
    """A column without a value is left out, and so is the broker's name where there is only one."""
    values = {row[place] for row in table.rows}
    return len(values) > 1 if table.columns[place].name == "broker" else bool(values - {None, ""})


# ---- the jobs --------------------------------------------------------------------------------------------------------
# Their arguments, and how they are called.


@dataclass(frozen=True, slots=True)
class Job:
    """One job of ``artemis-py pipeline``."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    call: Callable[[Call, argparse.Namespace], Result]


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _archive_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=_place, metavar="DIR", help="directory of the archive, or s3://bucket/…")
    parser.add_argument("--tables", default="messages,events", metavar="NAMES", help="default: messages,events")
    parser.add_argument(
        "--table-format",
        dest="layout",
        choices=("parquet", "delta"),
        help="of a new archive: Parquet files (the default), or Delta tables by address and hour (that in s3://…)",
    )
    parser.add_argument("--follow", action="store_true", help="go on until Ctrl-C or SIGTERM")
    parser.add_argument(
        "--every", default="1m", type=_period_ms, metavar="TIME", help="how often, with --follow (default: 1m)"
    )
    parser.add_argument(
        "--compact-before",
        metavar="TIME",
        type=_earlier,
        help="merge the small files of each date, of Delta hour, before this time: 2026-01-31, 24h (before now) …",
    )
    parser.add_argument("--vacuum", action="store_true", help="of Delta: remove files that no version of a week has")
    parser.add_argument(
        "--cursor",
        default="archive",
        metavar="NAME",
        help=("the cursor by which the broker keeps the log for it (archive)"),
    )
    parser.add_argument("--accept-gap", action="store_true", help="continue although the log already lacks something")


def _earlier(text: str) -> Callable[[], int]:
    """A time that may be told from now on, whenever that is."""
    moment(text, _now_ms())
    return lambda: moment_ms(text, _now_ms())


def _archive(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.spark.jobs.archive import TABLES, Following, Upkeep, archive, feeds_of
    from artemis_py.spark.runtime.command import stop_signals

    tables = [name.strip() for name in args.tables.split(",")]
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise UsageError(f"no table {unknown[0]!r} to archive; the tables are {', '.join(TABLES)}")
    feeds = feeds_of(call.source, args.cursor, accepts_gap=args.accept_gap)
    with ExitStack() as stack:
        following = None
        if args.follow:
            following = Following(stack.enter_context(stop_signals()), args.every / 1000, call.tell)
            call.tell(f"archiving into {args.directory} until Ctrl-C or SIGTERM")
        return archive(
            call.spark,
            feeds,
            args.directory,
            tables=tables,
            layout=args.layout,
            storage=dict(args.storage),
            upkeep=Upkeep(args.compact_before, args.vacuum),
            following=following,
            on_step=call.say,
        )


def _losses(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.spark.jobs.losses import losses

    return losses(call.spark, call.source)


def _dead_letters(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.spark.jobs.dead_letters import dead_letters

    return dead_letters(call.spark, call.source)


def _rate(text: str) -> float:
    try:
        return parse_decimal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _replay_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--where", metavar="CONDITION", help="SQL over the table messages, header['name'] and text (the body)"
    )
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--address", metavar="ADDRESS", help="where to publish to")
    to.add_argument("--original", action="store_true", help="publish each message to its original address")
    parser.add_argument("--rate", type=_rate, metavar="N", help="messages per second (default: as fast as possible)")
    parser.add_argument("--publish", action="store_true", help="publish; without this option, a dry run")
    parser.add_argument("--target", metavar="tcp://HOST:PORT", help="the STOMP acceptor to publish to")
    parser.add_argument("--target-user", metavar="NAME", help="login for --target")
    parser.add_argument("--target-password-file", metavar="FILE", help="the password for --target, in its first line")
    parser.add_argument("--target-token-file", metavar="FILE", help="a token for --target, in its first line")
    parser.add_argument("--target-ca-file", metavar="FILE", help="certificates to trust at --target, in PEM")
    parser.add_argument(
        "--target-password", metavar="TEXT", help="the password; others see it in the list of processes"
    )
    parser.add_argument("--run-id", metavar="TEXT", help="continue an interrupted replay: the run id that it printed")


def _replay(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.spark.jobs.replay import Target, replay

    if args.publish and not args.target:
        raise UsageError("--publish needs --target tcp://HOST:PORT, the STOMP acceptor to publish to")
    if args.rate is not None and not 0 < args.rate < float("inf"):
        raise UsageError(f"--rate {args.rate:g} is not a number of messages per second")
    options = {"url": args.target, "user": args.target_user, "password": args.target_password}
    options |= {"passwordFile": args.target_password_file, "tokenFile": args.target_token_file}
    options["caFile"] = args.target_ca_file
    target = Target(args.address, {name: value for name, value in options.items() if value})
    run_id = (args.run_id or f"replay-{uuid.uuid4().hex[:12]}") if args.publish else None
    if run_id is not None:
        # Times that count back from now would choose others next time.
        times = "" if args.from_ms is None else f" --from {args.from_ms}"
        times += "" if args.to_ms is None else f" --to {args.to_ms}"
        call.tell(f"run id {run_id}: if this is interrupted, run it again with --run-id {run_id}{times} to continue")
    return replay(call.spark, call.source, target, where=args.where, rate=args.rate, run_id=run_id, on_step=call.say)


def _trace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "message", metavar="MESSAGE-ID", help=("message id as in a MESSAGE frame (12-345), or its number (345)")
    )
    parser.add_argument("--broker", metavar="NAME", help="the broker's log to look in, when there are several")


def _trace(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.spark.jobs.trace import trace

    return trace(call.spark, call.source, args.message, broker=args.broker)


def _key(text: str) -> tuple[str, str]:
    column, _, expression = (part.strip() for part in text.partition("="))
    if not column:
        raise argparse.ArgumentTypeError(f"{text!r} names no column; write COLUMN or COLUMN=EXPRESSION")
    return column, expression or column


def _reconcile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sink", required=True, metavar="PLACE", help="the table: a directory of Delta or Parquet, s3://…, or jdbc:…"
    )
    parser.add_argument(
        "--key",
        required=True,
        action="append",
        type=_key,
        metavar="COLUMN[=EXPRESSION]",
        help="a column of the sink, and SQL over the log for it (default: its column of this name); may be repeated",
    )
    parser.add_argument("--where", metavar="CONDITION", help="only these messages: SQL as for replay")
    parser.add_argument("--late", metavar="TIME", type=_period_ms, help="how long a message may be under way: 10m")
    parser.add_argument("--sink-time", metavar="COLUMN", help="when a row came into the sink; with --late")
    parser.add_argument("--sink-where", metavar="CONDITION", help="only these rows: SQL over the sink's columns")
    parser.add_argument("--sink-table", metavar="NAME", help="of a database: the table")
    parser.add_argument("--sink-user", metavar="NAME", help="of a database: the login")
    parser.add_argument("--sink-password-file", metavar="FILE", help="of a database: the password, in its first line")
    parser.add_argument(
        "--sink-option",
        metavar="NAME=VALUE",
        type=_pair,
        action="append",
        default=[],
        help="of a database: an option of Spark's JDBC source, such as driver=…; may be repeated",
    )


def _reconcile(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.cli.password_input import first_line
    from artemis_py.spark.jobs.reconcile import JDBC, Key, Sink, reconcile

    if args.sink_time and args.late is None:
        raise UsageError("--sink-time needs --late TIME: after how long a row is late")
    options = dict(args.storage)
    if args.sink.startswith(JDBC):
        options = dict(args.sink_option)
        if args.sink_user:
            options["user"] = args.sink_user
        if args.sink_password_file:
            options["password"] = first_line(args.sink_password_file, "--sink-password-file")
    sink = Sink(args.sink.rstrip("/"), args.sink_table, options, args.sink_where)
    keys = [Key(*one) for one in args.key]
    return reconcile(
        call.spark,
        call.source,
        sink,
        keys,
        where=args.where,
        late_ms=args.late,
        sink_time=args.sink_time,
        on_step=call.say,
    )


JOBS: Final[dict[str, Job]] = {
    "archive": Job("write the log as Parquet or Delta; the broker may then drop it", _archive_arguments, _archive),
    "losses": Job(
        "messages removed by rings, full addresses, expiry and failed deliveries: whose, when, why",
        _no_arguments,
        _losses,
    ),
    "dead-letters": Job("dead and expired messages by cause, origin, headers and body", _no_arguments, _dead_letters),
    "replay": Job("publish a selection of the log again; a dry run by default", _replay_arguments, _replay),
    "reconcile": Job(
        "compare the log with a table made of it: missing, doubled and late rows", _reconcile_arguments, _reconcile
    ),
    "trace": Job("the history of one message", _trace_arguments, _trace),
}
