"""``artemis-py cursors``: the cursors in the log of a running broker, or in the files of a stopped one."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from artemis_py.cli import broker_http
from artemis_py.cli.read_only import ReadOnlyDisk
from artemis_py.errors import ArtemisError
from artemis_py.shown import as_json, say, say_made, shown_time
from artemis_py.storage.disk.committer import ThreadCommitter
from artemis_py.storage.disk.disk import FileDisk, LockedError
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.format.scan import log_files
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.journal.start import SegmentCare
from artemis_py.storage.recovery.examination import examine
from artemis_py.storage.recovery.recovery import recover
from artemis_py.storage.retention.cursors import Cursor, check_name

HELP: Final = "list or drop the cursors in a broker's log"
_PATH: Final = "/log/cursors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``list WHERE [--format json]`` and ``drop WHERE NAME``."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="list|drop")
    listing = commands.add_parser("list", help="print one line per cursor")
    drop = commands.add_parser("drop", help="drop a cursor: it no longer holds back files")
    for each in (listing, drop):
        each.add_argument(
            "where", metavar="WHERE", help="http://host:port of a running broker, or journal-directory of a stopped one"
        )
        broker_http.add_arguments(each)
    listing.add_argument("--format", choices=("table", "json"), default="table", help="json: one object per line")
    drop.add_argument("name", metavar="NAME", help="the cursor's name")


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand. Raises ArtemisError if the broker or the files refuse it."""
    broker = _RunningBroker(args) if "://" in args.where else _StoppedBroker(Path(args.where))
    if args.command == "drop":
        broker.drop(check_name(args.name))
        say(f"dropped {args.name}")
        return 0
    found = broker.cursors()
    if args.format == "json":
        for fields in found:
            say_made(as_json(fields))
    else:
        _print_table(found)
    return 0


class _RunningBroker:
    """The cursors of a running broker, over HTTP."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._http = broker_http.BrokerHttp(args, args.where)

    def cursors(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._http.ask(_PATH))["cursors"]
        return found

    def drop(self, name: str) -> None:
        self._http.ask(f"{_PATH}/{quote(name)}", "DELETE")


class _StoppedBroker:
    """The cursors in a journal directory. Listing changes nothing; dropping writes a record, as the broker would."""

    def __init__(self, directory: Path) -> None:
        try:
            files = log_files([directory])
        except OSError as error:
            raise ArtemisError(f"{directory}: {error.strerror}") from None
        if not files:
            raise ArtemisError(f"{directory} has no journal files")
        self._directory = directory
        self._file_bytes = files[-1].path.stat().st_size

    def cursors(self) -> list[dict[str, Any]]:
        now_ms = int(time.time() * 1000)
        examined = examine(ReadOnlyDisk(self._directory))
        found = [Cursor(**fields) for _, fields in sorted(examined.index.cursors.items())]
        return [{**cursor.fields(), "holds": cursor.holds(now_ms)} for cursor in found]

    def drop(self, name: str) -> None:
        try:
            lock = DirectoryLock(self._directory)
        except LockedError as error:
            raise LockedError(f"{error}: give the URL of its HTTP acceptor instead") from None
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


def _print_table(found: list[dict[str, Any]]) -> None:
    width = max([4, *(len(fields["name"]) for fields in found)])
    say(f"{'name':<{width}}  {'lsn':>12}  {'behind MiB':>10}  {'holds':<5}  {'moved':<24}  owner")
    for fields in found:
        behind = f"{fields['lag_bytes'] / 1048576:.1f}" if "lag_bytes" in fields else "-"
        note = "  (overtaken: files it had not read were removed)" if fields.get("is_overtaken") else ""
        moved = shown_time(fields["moved_ms"])
        holds = "yes" if fields["holds"] else "no"
        say(
            f"{fields['name']:<{width}}  {fields['lsn']:>12}  {behind:>10}  {holds:<5}  {moved:<24}"
            f"  {fields['owner']}{note}"
        )
