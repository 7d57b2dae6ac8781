"""``artemis-py check FILE``: everything that is wrong with a configuration, in one go."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.cli.configuration import (
    add_file,
    add_properties,
    add_strictness,
    file_or_default,
    print_ports,
    print_problems,
    summary,
)
from artemis_py.cli.options import add_json
from artemis_py.config.problems import Problems, told
from artemis_py.config.reader import load
from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ArtemisError, ConfigError, Problem
from artemis_py.message import Message
from artemis_py.paged_messages import Page
from artemis_py.record_log import Chunk, MemoryLog, PageLog
from artemis_py.security.realms import open_realms
from artemis_py.terminal_output import GREEN, RED, escaped, many, painter, say_made
from artemis_py.terminal_output import as_json as json_text

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker

HELP = "report every problem of a broker.xml or an Artemis instance"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``check``."""
    add_file(parser)
    add_properties(parser)
    add_strictness(parser)
    parser.add_argument("--quiet", action="store_true", help="print only errors; print nothing when there are none")
    add_json(parser, "one object")


def run(args: argparse.Namespace) -> int:
    """Prints all problems, a verdict and where the broker would listen; returns 0 if it would start with this file,
    else 2. With ``--strict`` it also returns 2 for a warning.
    """
    file = file_or_default(args.file, "check")
    config: BrokerConfig | None = None
    found: list[Problem] = []
    problems: Sequence[Problem] = ()
    try:
        config = load(file, properties=args.properties)
        found = [*config.notices, *tls_problems(config), *bridge_problems(config)]
        problems = [*found, *_problems_of_users(config), *journal_problems(config)]
    except ConfigError as error:
        problems = [*found, *error.problems]
    if any(each.severity == "error" for each in problems):
        config = None
    shown = told(problems, args.silence)
    valid = config is not None and not (args.strict and any(each.severity == "warning" for each in shown))
    places = ports_of(config) if config is not None else []
    if args.format == "json":
        say_made(json_text(as_json(str(file), shown, places, valid=valid), indent=2))
    elif not args.quiet:
        print_problems(shown, sys.stdout)
        print_verdict(str(file), shown, valid=valid)
        if config is not None:
            print_ports(places)
    elif not valid:
        print_problems([each for each in shown if args.strict or each.severity == "error"], sys.stdout)
    return 0 if valid else 2


def tls_problems(config: BrokerConfig) -> list[Problem]:
    """What is wrong with the key and trust stores of the ports that would be opened."""
    if not any(each.is_opened and each.is_tls for each in config.acceptors):
        return []
    from artemis_py.server.tls.context import check_files

    return [
        Problem(
            "error" if is_fatal else "warning",
            each.origin.file,
            each.origin.line,
            text,
            code="" if is_fatal else "certificate",
        )
        for each, text, is_fatal in check_files(config)
    ]


def bridge_problems(config: BrokerConfig) -> list[Problem]:
    """What is wrong with the stores and passwords with which bridges would connect. The broker starts anyway."""
    if not config.bridges:
        return []
    from artemis_py.server.tls.context import check_bridges

    return [
        Problem("warning", each.origin.file, each.origin.line, text, code="bridge")
        for each, text in check_bridges(config)
    ]


def _problems_of_users(config: BrokerConfig) -> list[Problem]:
    """Where users come from is opened as ``run`` does. Returns warnings, and raises ConfigError for errors."""
    problems = Problems()
    if config.security_enabled:
        open_realms(config, problems)
    return problems.in_order(config.file)


def ports_of(config: BrokerConfig) -> list[str]:
    """The addresses on which the broker would listen, with protocols."""
    return [
        f"{each.place} for {', '.join(each.protocols)}{' over TLS' if each.is_tls else ''} (acceptor {each.name})"
        for each in config.acceptors
        if each.is_opened
    ]


def as_json(file: str, problems: Sequence[Problem], places: Sequence[str], *, valid: bool) -> dict[str, object]:
    """Return what ``--json`` prints."""
    counts = Counter(problem.severity for problem in problems)
    return {
        "file": file,
        "valid": valid,
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
        "listening": list(places),
        "problems": [asdict(problem) | {"text": str(problem)} for problem in problems],
    }


def print_verdict(file: str, problems: Sequence[Problem], *, valid: bool) -> None:
    """Print whether the broker would start, and the number of problems by severity."""
    paint = painter(sys.stdout)
    verdict = paint(GREEN, "valid") if valid else paint(RED, "refused")
    say_made(f"{escaped(file)}: {verdict} ({summary(problems)})")


# ---- messages --------------------------------------------------------------------------------------------------------
#
# A start is tried in memory, with what the journal has, and nothing is written. Only this imports the core.


KEPT: Final = "kept-messages"
"""The code of what stays as it is for the sake of messages, and of journals that are not read."""
LOST: Final = "loses-messages"
"""The code of what takes messages away."""
_RUNNING: Final = "artemis-py diff --running tells what the file does to the messages of a running broker"
_BYTES_MAX: Final = 1 << 30
"""Reading a larger journal takes longer than anybody waits for a check."""


class _UnreadPages(PageLog):
    """Pages that are counted and not read."""

    backlog_bytes = 0

    def open(self, page: Page, address: str) -> int:
        return 0

    def encode(self, message: Message, place: int, queue_ids: list[int], due_ms: int) -> bytes:
        return b""

    def append(self, page: Page, record: bytes, *, durable: bool) -> None:
        return

    def request(self, page: Page, offset: int) -> None:
        return

    def arrivals(self) -> list[Chunk]:
        return []

    def drop(self, page: Page) -> None:
        return


def journal_problems(config: BrokerConfig) -> list[Problem]:
    """What a start with this configuration would do to the messages of its journal: which queues stay as they are
    although the file says otherwise, which messages would go, and whether they are read at all. Empty where there is no
    journal.
    """
    from artemis_py.cli.journal_reading import ReadOnlyDisk
    from artemis_py.core.broker import Broker
    from artemis_py.server.store import unread_journal
    from artemis_py.storage.format.names import segment_number
    from artemis_py.storage.recovery.examination import examine

    unread = unread_journal(config)
    if unread is not None:
        return [Problem("warning", config.file, 0, unread, code=KEPT)]
    directory = Path(config.journal_directory)
    if not config.persistence_enabled:
        return []
    try:
        if not directory.is_dir():
            return []
        sizes = [each.stat().st_size for each in os.scandir(directory) if segment_number(each.name) is not None]
        if not sizes:
            return []
        if sum(sizes) > _BYTES_MAX:
            return [_note(config, f"the journal in {directory} is larger than 1 GiB and was not read; {_RUNNING}")]
        examined = examine(ReadOnlyDisk(directory))
        now_ms = time.time_ns() // 1_000_000
        broker = Broker(config, MemoryLog(), now_ms, examined.index.recovered_state(), _UnreadPages())
    except (ArtemisError, OSError) as error:
        return [_note(config, f"the journal in {directory} could not be read: {error}; {_RUNNING}")]
    return _told(broker, config)


def _note(config: BrokerConfig, text: str) -> Problem:
    return Problem("note", config.file, 0, text, code=KEPT)


def _told(broker: Broker, config: BrokerConfig) -> list[Problem]:
    from artemis_py.management.reload_impact import Impact, impact_of

    affected = Impact()
    for _ in impact_of(broker, config, affected):
        pass
    deleted = {row.name: row for row in affected.rows if row.is_deleted and row.messages}
    declared = {queue.name for address in config.addresses for queue in address.queues}
    found = [
        Problem("warning", config.file, 0, f"queue {row.name} ({many(row.messages, 'message')}): {row.what}", code=LOST)
        for row in deleted.values()
    ]
    found += [replace(each, code=KEPT) for name, each in broker.kept_back.items() if name not in deleted]
    found += [replace(each, code=LOST) for each in broker.lost]
    for queue in broker.queues.values():
        if queue.configured and queue.name not in declared and queue.name not in deleted and queue.message_count:
            where = f"on address {queue.address.name}, with its {many(queue.message_count, 'message')}"
            found.append(_note(config, f"queue {queue.name} is not declared any more, and stays {where}"))
    return found
