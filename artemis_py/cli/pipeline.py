"""``artemis-py pipeline NAME``: jobs over the broker's log, on Spark."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.cli import colour, logins
from artemis_py.cli.options import JSON, add_json
from artemis_py.errors import ArtemisError
from artemis_py.spark.jobs.commands import JOBS, Call
from artemis_py.spark.jobs.result import NUMBERS, shown
from artemis_py.spark.jobs.source import FORMS, ArchiveTables, LogTables, Source, Span, moment_ms
from artemis_py.terminal_output import say, say_made
from artemis_py.text_table import Column, print_table

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
    parser.epilog = "artemis-py pipeline NAME --help shows the arguments of a job; docs/pipeline.md has examples"
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
        "--archive", metavar="DIR", type=Path, help=("an archive that the job archive wrote"), dest="archived"
    )
    logins.add_login(source)
    source.add_argument("--password", metavar="TEXT", help="the password; others see it in the list of processes")
    logins.add_tls(source)
    now = partial(_moment, now_ms=time.time_ns() // 1_000_000)
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
    spark.add_argument("--verbose", action="store_true", help="show the output of Spark and Java")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a Spark setting; write NAME=VALUE, such as spark.executor.memory=4g"
        )
    return name, value


def _moment(text: str, now_ms: int) -> int:
    try:
        return moment_ms(text, now_ms)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


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
    return 0


def source_of(args: argparse.Namespace) -> Source:
    """The log that the arguments name. Raises ArtemisError if they name none or more than one."""
    if args.context and not (args.journal or args.archived):
        args.url = [logins.url_for(args, None if args.url is None else args.url[0]), *(args.url or ())[1:]]
    given = [name for name in ("journal", "url", "archived") if getattr(args, name)]
    if len(given) != 1 or (args.context and not args.url):
        said = "only one of these" if given else "the place of the log"
        raise ArtemisError(f"give {said}: --journal DIR, --url http://HOST:PORT, --context NAME or --archive DIR")
    if args.from_ms is not None and args.to_ms is not None and args.from_ms >= args.to_ms:
        raise ArtemisError("--from must be before --to")
    span = Span(args.from_ms, args.to_ms)
    addresses = tuple(name.strip() for name in (args.addresses or "").split(",") if name.strip())
    if args.archived is not None:
        return ArchiveTables(args.archived, span, addresses)
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

    spark = stack.enter_context(quiet_session(args.master, dict(args.conf), is_verbose=args.verbose))
    progress.watch(spark)
    with told_errors(spark):
        result = JOBS[args.job].call(Call(spark, source, progress.say, progress.tell), args)
        if args.parquet is not None:
            progress.say(f"writing {args.parquet}")
            result.write_parquet(args.parquet)
    if result.tables and not any(table.rows for table in result.tables):
        result.notes = [*result.notes, f"no results in {source.extent()}"]
    return result


def _print(result: Result) -> None:
    say_made(colour.painter(sys.stdout)(colour.BOLD, result.title))
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
