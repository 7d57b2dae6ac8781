"""The jobs, their command-line arguments, and their calls. Importing this starts no Java and needs no pyspark."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.spark.jobs.source import JobError
from artemis_py.units import parse_decimal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from artemis_py.spark.jobs.result import Result
    from artemis_py.spark.jobs.source import Source


@dataclass(frozen=True, slots=True)
class Call:
    """The common arguments of a job's call."""

    spark: SparkSession
    source: Source
    say: Callable[[str], None]
    """Shows progress on a terminal."""
    tell: Callable[[str], None]
    """Prints something that the user needs to keep."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job of ``artemis-py pipeline``."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    call: Callable[[Call, argparse.Namespace], Result]


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def _archive_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory of the archive")
    parser.add_argument("--tables", default="messages,events", metavar="NAMES", help="default: messages,events")
    parser.add_argument(
        "--compact-before",
        metavar="DATE",
        type=date.fromisoformat,
        help="merge the small files of each date before this one (2026-01-31)",
    )
    parser.add_argument(
        "--cursor",
        default="archive",
        metavar="NAME",
        help=("the cursor by which the broker keeps the log for it (archive)"),
    )
    parser.add_argument("--accept-gap", action="store_true", help="continue although the log already lacks something")


def _archive(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.spark.jobs.archive import TABLES, archive, feeds_of

    tables = [name.strip() for name in args.tables.split(",")]
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise JobError(f"no table {unknown[0]!r} to archive; the tables are {', '.join(TABLES)}")
    feeds = feeds_of(call.source, args.cursor, accepts_gap=args.accept_gap)
    return archive(
        call.spark,
        feeds,
        args.directory,
        tables=tables,
        compact_before=args.compact_before and args.compact_before.isoformat(),
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
        raise JobError("--publish needs --target tcp://HOST:PORT, the STOMP acceptor to publish to")
    if args.rate is not None and not 0 < args.rate < float("inf"):
        raise JobError(f"--rate {args.rate:g} is not a number of messages per second")
    options = {"url": args.target, "user": args.target_user, "password": args.target_password}
    options |= {"passwordFile": args.target_password_file, "tokenFile": args.target_token_file}
    options["caFile"] = args.target_ca_file
    target = Target(args.address, {name: value for name, value in options.items() if value})
    run_id = (args.run_id or f"replay-{uuid.uuid4().hex[:12]}") if args.publish else None
    if run_id is not None:
        call.tell(f"run id {run_id}: if this is interrupted, run it again with --run-id {run_id} to continue")
    return replay(call.spark, call.source, target, where=args.where, rate=args.rate, run_id=run_id, on_step=call.say)


def _trace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "message", metavar="MESSAGE-ID", help=("message id as in a MESSAGE frame (12-345), or its number (345)")
    )
    parser.add_argument("--broker", metavar="NAME", help="the broker's log to look in, when there are several")


def _trace(call: Call, args: argparse.Namespace) -> Result:
    from artemis_py.spark.jobs.trace import trace

    return trace(call.spark, call.source, args.message, broker=args.broker)


JOBS: Final[dict[str, Job]] = {
    "archive": Job(
        "write the log as Parquet by date and address; the broker may then drop it", _archive_arguments, _archive
    ),
    "losses": Job(
        "messages removed by rings, full addresses, expiry and failed deliveries: whose, when, why",
        _no_arguments,
        _losses,
    ),
    "dead-letters": Job("dead and expired messages by cause, origin, headers and body", _no_arguments, _dead_letters),
    "replay": Job("publish a selection of the log again; a dry run by default", _replay_arguments, _replay),
    "trace": Job("the history of one message", _trace_arguments, _trace),
}
