"""``artemis-py diff OLD NEW``, or ``--running``: what another configuration would change."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.cli.configuration import print_problems
from artemis_py.cli.logins import add_http
from artemis_py.config.changes import NOTHING, NOW, RESTART, WHEN_IDLE, plan_of
from artemis_py.config.reader import load
from artemis_py.errors import AdviceError, ArtemisError, ConfigError
from artemis_py.terminal_output import BOLD, CYAN, DIM, GREEN, YELLOW, as_json, painter, say, say_made, warn, warn_made

HELP = "show what another configuration would change, and what would need a restart"

_PATIENCE_S: Final = 600.0
"""A busy broker compares thousands of queues for a minute."""
_HEADS: Final = (
    (NOW, "in force at once"),
    (WHEN_IDLE, "in force once the queue is empty and has no consumers (at once without message groups)"),
    (RESTART, "needs a restart"),
    (NOTHING, "without effect"),
)
_COLOURS: Final = {NOW: GREEN, WHEN_IDLE: CYAN, RESTART: YELLOW, NOTHING: DIM}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``diff``."""
    parser.add_argument("old", metavar="OLD", type=Path, nargs="?", help="configuration file, or folder of an instance")
    parser.add_argument("new", metavar="NEW", type=Path, nargs="?", help="the one to compare it with")
    parser.add_argument(
        "--running",
        action="store_true",
        help="compare what is in force in a running broker with its file as it is now, and count the messages that "
        "would be affected",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_http(parser)
    parser.epilog = "exit codes: 0 nothing would change; 1 something would; 2 a configuration is refused"


def run(args: argparse.Namespace) -> int:
    """Prints the differences. Returns 0 if there are none, 1 if there are some, 2 if a configuration is refused or
    cannot be compared.
    """
    try:
        answer = _of_running(args) if args.running else _of_files(args)
    except ConfigError as error:
        print_problems([each for each in error.problems if each.severity == "error"], sys.stderr)
        return 2
    except ArtemisError as error:
        warn(f"artemis-py: {error}")
        if isinstance(error, AdviceError):
            warn_made(error.advice)
        return 2
    if args.json:
        say_made(as_json(answer, indent=2))
    else:
        print_changes(answer)
    return 1 if answer["changes"] else 0


def _of_files(args: argparse.Namespace) -> dict[str, Any]:
    if args.old is None:
        raise ArtemisError("diff needs two configurations, OLD and NEW, or --running")
    if args.new is None:
        raise ArtemisError(
            f"name the configuration to compare {args.old} with; or see what a running broker would read now: "
            "artemis-py diff --running"
        )
    old = load(args.old)
    plan = plan_of(old, load(args.new))
    return {"file": str(args.new), "changes": [change.as_row() for change in plan.changes]}


def _of_running(args: argparse.Namespace) -> dict[str, Any]:
    if args.old is not None:
        raise ArtemisError(
            f"--running compares what is in force in a broker with its own file, not with {args.old}: omit "
            f"{args.old}, or name two files without --running: artemis-py diff OLD {args.old}"
        )
    answer: dict[str, Any] = json.loads(BrokerHttp.of(args, _PATIENCE_S).ask("/api/broker/changes"))
    return answer


def print_changes(answer: Mapping[str, Any]) -> None:
    """Print the differences for people, by when they would be in force."""
    paint = painter(sys.stdout)
    changes: Sequence[Mapping[str, Any]] = answer["changes"]
    for effect, head in _HEADS:
        rows = [row for row in changes if row["effect"] == effect]
        if rows:
            say_made(f"{paint(_COLOURS[effect], head)}:")
        for row in rows:
            say(f"  {_text(row)}")
    affected = answer.get("affected", ())
    if affected:
        say_made(f"{paint(BOLD, 'affected now')}:")
    for row in affected:
        say(f"  {row['kind']} {row['name']} ({_count(row)}): {row['what']}")
    known = {(row["part"], row["name"], row["setting"]) for row in changes}
    pending = [
        row for row in answer.get("pendingRestart", ()) if (row["part"], row["name"], row["setting"]) not in known
    ]
    if pending:
        say_made(f"{paint(YELLOW, 'waits for a restart since earlier')}:")
    for row in pending:
        say(f"  {_text(row)}")
    count = answer.get("changeCount", len(changes))
    if count > len(changes):
        say(f"and {count - len(changes):,} more changes")
    if not changes:
        say(f"{answer['file']}: nothing would change")


def _text(row: Mapping[str, Any]) -> str:
    named = f"{row['part']} {row['name']}".strip()
    place = f"{row['file']}:{row['line']}" if row["line"] else row["file"]
    if row["setting"]:
        old, new = (row[name] if row[name] is not None else "not set" for name in ("old", "new"))
        text = f"{named}: {row['setting']} {old} → {new}  ({place})"
    else:
        text = f"{named} {row['action']}  ({place})"
    return f"{text}; {row['note']}" if row["note"] else text


def _count(row: Mapping[str, Any]) -> str:
    counts = [f"{row['messages']:,} message{'' if row['messages'] == 1 else 's'}"]
    if row["consumers"]:
        counts.append(f"{row['consumers']:,} consumer{'' if row['consumers'] == 1 else 's'}")
    return ", ".join(counts)
