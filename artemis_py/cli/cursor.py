"""``artemis-py cursor``: the cursors in the log of a running broker, or in the files of a stopped one."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Final

from artemis_py.cli import operations
from artemis_py.cli.answer_tables import print_fields, print_list
from artemis_py.cli.journal_reading import ReadOnlyDisk
from artemis_py.errors import ArtemisError
from artemis_py.management.listing import Selection
from artemis_py.management.managed import UNKNOWN, LogCursor
from artemis_py.management.operation import EDIT, Operation, arguments_of, select_rows
from artemis_py.management.operations.storage import CURSORS
from artemis_py.storage.disk.disk import FileDisk, LockedError
from artemis_py.storage.disk.group_commit import ThreadCommitter
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.format.scan import log_files
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings, SegmentCare
from artemis_py.storage.recovery.accept_journal import recover
from artemis_py.storage.recovery.examination import examine
from artemis_py.storage.retention.cursors import Cursor, check_name
from artemis_py.terminal_output import as_json, say_made

HELP: Final = "list or remove the cursors in the log of a running broker, or in the files of a stopped one"
_WORD: Final = "cursor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The operations on cursors, each with ``--journal DIRECTORY``."""
    for action in operations.add(parser, _WORD):
        action.add_argument(
            "--journal",
            metavar="DIRECTORY",
            type=Path,
            help="the journal-directory of a stopped broker, instead of one",
        )


def run(args: argparse.Namespace) -> int:
    """Runs the action. Raises ArtemisError if the broker or the files refuse it."""
    if args.journal is None:
        return operations.run(args)
    journal = _StoppedBroker(args.journal)
    operation: Operation = args.operation
    answer = journal.remove(operation, args) if operation.right == EDIT else journal.listed(operation, args)
    if args.json:
        say_made(as_json(answer))
    elif operation.lists is None:
        print_fields(answer, None)
    else:
        print_list(CURSORS, answer)
    return 0


class _StoppedBroker:
    """The cursors in a journal directory. A list changes nothing; a removal writes a record, as the broker would."""

    def __init__(self, directory: Path) -> None:
        try:
            files = log_files([directory])
        except OSError as error:
            raise ArtemisError(f"{directory}: {error.strerror}") from None
        if not files:
            raise ArtemisError(f"{directory} has no journal files")
        self._directory = directory
        self._file_bytes = files[-1].path.stat().st_size

    def listed(self, operation: Operation, args: argparse.Namespace) -> dict[str, Any]:
        """What the running broker would answer, but for what only it knows."""
        now_ms = int(time.time() * 1000)
        examined = examine(ReadOnlyDisk(self._directory))
        found = [_listed(Cursor(**fields), now_ms) for _, fields in sorted(examined.index.cursors.items())]
        sent = {name: value if isinstance(value, list) else [value] for name, value in vars(args).items()}
        given = arguments_of(operation, {one.name: sent[one.name] for one in operation.arguments})
        if not args.fields and not args.json:
            given["fields"] = CURSORS.brief
        selection = _result_of(select_rows(CURSORS, found, given))
        rows = [row for some in selection.rows() for row in some]
        return {"count": selection.count, "page": selection.query.page, "size": selection.query.size, "data": rows}

    def remove(self, operation: Operation, args: argparse.Namespace) -> dict[str, Any]:
        """Remove a cursor."""
        name = check_name(args.cursor)
        operations.confirm(operation, args, None)
        self._write_removal(name)
        return {"removed": name}

    def _write_removal(self, name: str) -> None:
        try:
            lock = DirectoryLock(self._directory)
        except LockedError as error:
            raise LockedError(f"{error}: omit --journal, and ask the broker itself") from None
        disk = FileDisk(self._directory)
        committer = ThreadCommitter(lambda: None)
        try:
            # ``open_files`` cannot do this: without a broker.xml nobody knows where large bodies and pages are, and in
            # wrong directories it would find none and give them all up. So only the journal is opened: it gets one
            # record, and no segment leaves it.
            recovered = recover(disk)
            if name not in recovered.index.cursors:
                raise ArtemisError(f"there is no cursor {name!r}")
            settings = JournalSettings(file_bytes=self._file_bytes, compact_files_min=0, retains=True)
            care = SegmentCare(retire=lambda _name: None)
            journal = Journal(disk, committer, settings, start=recovered.start, care=care)
            journal.records.now_ms = int(time.time() * 1000)
            journal.records.cursor_changed({"name": name, "deleted": True})
            journal.seal()
        finally:
            committer.stop()
            disk.close()
            lock.release()
        if committer.failure is not None:
            raise committer.failure


def _listed(cursor: Cursor, now_ms: int) -> LogCursor:
    return LogCursor(
        cursor.name, cursor.lsn, cursor.owner, cursor.moved_ms, cursor.ttl_s, cursor.holds(now_ms), UNKNOWN, None
    )


def _result_of(steps: Any) -> Selection[LogCursor]:
    """The result of an operation that waits for nothing."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: Selection[LogCursor] = ended.value
            return found
