"""``artemis-py journal``: inspects and repairs the files of a stopped broker, a retention directory or a copy.

Only ``repair --write`` changes anything.
"""

from __future__ import annotations

import argparse
import fcntl
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from artemis_py.cli.journal_reading import ReadOnlyDisk, fields_of, summary_of
from artemis_py.cli.options import add_json
from artemis_py.errors import ArtemisError
from artemis_py.message import LargeBody
from artemis_py.storage.disk.lock import LOCK_NAME, DirectoryLock, owner_in, read_lock_file
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.names import body_name, checksum_of, find_body
from artemis_py.storage.format.reader import LogEntry, Range, read_entries
from artemis_py.storage.format.records import FILE_HEADER_BYTES, CodecError, VersionError
from artemis_py.storage.format.scan import Damage, LogFile, log_files, whole_records
from artemis_py.storage.journal.bindings_copy import read_copy
from artemis_py.storage.journal.extent import read_extent
from artemis_py.storage.journal.index import Replayed, Segment, apply
from artemis_py.storage.recovery.damage_report import messages_by_queue, orphan_lines, what_is_left
from artemis_py.storage.recovery.examination import MOVES_NAME, Examined, examine
from artemis_py.storage.recovery.missing_files import (
    DataDirectories,
    MissingFiles,
    missing_files,
    missing_pages,
    names_in,
    read_given_up,
)
from artemis_py.storage.recovery.repair import repair
from artemis_py.terminal_output import as_json as json_text
from artemis_py.terminal_output import many, say, say_made, shown_time, warn

HELP: Final = "verify, repair or dump the journal files of a stopped broker"
EXIT_CODES: Final = (
    "exit codes: 0 no damage; 1 damage that a broker starts with; 4 files, queues or many records are lost, and a "
    "broker starts only with --accept-loss"
)
_CODES: Final = {name: code for code, name in records.RECORD_NAMES.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``verify DIR``, ``repair DIR [--write]`` and ``dump DIR [--json] [--type NAMES] [--lsn A..B]``."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="verify|repair|dump")
    verify = commands.add_parser("verify", help="check every file and record", epilog=EXIT_CODES)
    repair = commands.add_parser(
        "repair",
        help="show what can be saved from a damaged journal; with --write, write a clean one and keep the old files",
        epilog=EXIT_CODES,
    )
    repair.add_argument("directory", type=Path, metavar="DIR", help="journal-directory of a stopped broker")
    repair.add_argument(
        "--write",
        action="store_true",
        help="write the clean journal; the old files are kept in DIR, in a folder lost+found-…",
    )
    dump = commands.add_parser("dump", help="print one line per record")
    for each in (verify, dump):
        each.add_argument(
            "directory", type=Path, metavar="DIR", help=("journal-directory, or a directory of retained files")
        )
    verify.add_argument(
        "--large",
        type=Path,
        metavar="DIR",
        help="large-messages-directory (default: largemessages or large, next to the journal)",
    )
    verify.add_argument(
        "--paging",
        type=Path,
        metavar="DIR",
        help="paging-directory (default: paging, next to the journal)",
    )
    add_json(dump, "one object per line", people="table")
    dump.add_argument(
        "--type", type=_types, default=frozenset(_CODES.values()), metavar="NAMES", help=", ".join(_CODES)
    )
    dump.add_argument(
        "--lsn", type=_lsn_range, default=(0, None), metavar="A..B", help="both bounds included; either may be left out"
    )


def _types(text: str) -> frozenset[int]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in _CODES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown type {unknown[0]!r}; the types are {', '.join(_CODES)}")
    return frozenset(_CODES[name] for name in names)


def _lsn_range(text: str) -> tuple[int, int | None]:
    low, dots, high = text.partition("..")
    if not all((part.isascii() and part.isdecimal()) or not part for part in (low, high)) or text in ("", ".."):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range; write 10..20, 10.., ..20 or 10")
    first = int(low or 0)
    return first, (int(high) if high else None if dots else first)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand. Raises ArtemisError if the directory cannot be read or has no journal files."""
    directory: Path = args.directory
    try:
        files = log_files([directory])
        is_half_repaired = (directory / MOVES_NAME).exists()
        if not files and not is_half_repaired and read_extent(ReadOnlyDisk(directory)).extent is None:
            raise ArtemisError(f"{directory} has no journal files")
        if args.command == "repair":
            return run_repair(directory, write=args.write)
        holder = _holder(directory)
        if holder is not None:
            warn(f"note: a broker{holder} is using {directory}; its last batch may be incomplete")
        if args.command == "verify":
            data = DataDirectories(
                _directories(directory, args.large, ("largemessages", "large")),
                _directories(directory, args.paging, ("paging",)),
            )
            return Verification(directory, files, data).run()
        return _dump(files, args.format == "json", args.type, args.lsn)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ArtemisError(f"{error.filename or directory}: {error.strerror}") from None


def _holder(directory: Path) -> str | None:
    """The process that holds the directory's lock, as `` (process N …)``; None if there is none."""
    try:
        with (directory / LOCK_NAME).open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                owner = owner_in(read_lock_file(lock.fileno()))
                return "" if owner is None else f" ({owner.shown})"
    except FileNotFoundError:
        pass
    return None


def _directories(directory: Path, told: Path | None, names: Sequence[str]) -> list[Path]:
    """Where other files of a broker may be: in the given directory, or in directories of these names next to the
    journal.
    """
    if told is not None:
        return [told]
    beside = directory.absolute().parent
    return [beside / name for name in names if (beside / name).is_dir()]


# ---- dump ----------------------------------------------------------------------------------------


def _dump(files: list[LogFile], as_json: bool, types: frozenset[int], lsns: tuple[int, int | None]) -> int:
    code = 0
    if not as_json:
        say(f"{'lsn':>12}  {'time':<24}  {'type':<21}  what")
    wanted = Range(lsn_min=lsns[0], lsn_max=lsns[1])
    for file in files:
        damages: list[Damage] = []
        for entry in read_entries(file, damages, wanted, is_last=file is files[-1]):
            if entry.record.type_code in types:
                if as_json:
                    say_made(_json(file, entry))
                else:
                    say(_line(entry))
        for damage in damages:
            warn(damage)
            code = code if damage.torn else EXIT_DAMAGED
    return code


def _line(entry: LogEntry) -> str:
    inside = f" (in group {entry.group})" if entry.group else ""
    when, name = shown_time(entry.time_ms), _name(entry)
    return f"{entry.record.lsn:>12}  {when:<24}  {name:<21}  {summary_of(entry.event)}{inside}"


def _json(file: LogFile, entry: LogEntry) -> str:
    record, group = entry.record, entry.group
    place = {"file": file.path.name, "offset": None if group else record.offset}
    fields = {"lsn": record.lsn, "time_ms": entry.time_ms, "type": _name(entry), "group": group or None, **place}
    return json_text({**fields, **fields_of(entry.event)})


def _name(entry: LogEntry) -> str:
    return records.RECORD_NAMES.get(entry.record.type_code, str(entry.record.type_code))


# ---- verify and repair -----------------------------------------------------------------------------------------------
#
# ``artemis-py journal verify`` and ``repair``: checks the files of a broker, and writes a clean journal.


EXIT_DAMAGED: Final = 1
EXIT_LOSS: Final = 4


class Verification:
    """Checks and reports each file, then everything that lives in all of them."""

    def __init__(self, directory: Path, files: list[LogFile], data: DataDirectories) -> None:
        self._directory = directory
        self._files = files
        self._data = data
        self._is_retained = any(file.closed_ms is not None for file in files)
        self._examined: Examined | None = None
        self._damage_count = 0
        self._record_count = 0

    def run(self) -> int:
        """Prints the findings; returns the exit code."""
        examined = None
        version: VersionError | None = None
        if not self._is_retained:
            try:
                examined = self._examined = examine(ReadOnlyDisk(self._directory))
            except VersionError as error:
                version = error
        for file in self._files:
            self._check(file, is_last=file is self._files[-1])
        self._tell_of_gaps()
        if examined is not None:
            self._tell_of_all(examined)
        damage = many(self._damage_count, "DAMAGED place")
        verdict = damage if self._damage_count else "no damage"
        losses = [] if examined is None else examined.losses
        for loss in losses:
            say(f"LOST: {loss}")
        if losses:
            verdict = f"{damage}; a broker does not start while anything is LOST"
        say(f"in all: {many(len(self._files), 'file')}, {many(self._record_count, 'record')}, {verdict}")
        return EXIT_LOSS if losses else EXIT_DAMAGED if self._damage_count or version is not None else 0

    # ---- one file --------------------------------------------------------------------------------

    def _check(self, file: LogFile, *, is_last: bool) -> None:
        data = file.path.read_bytes()
        name = file.path.name
        if not any(data):
            say(f"{name}: created, never written to")
            self._tell_of_damages(self._found_in(name))
            return
        damages: list[Damage] = []
        made = "no header"
        try:
            header = records.decode_file_header(data)
            made = f"format {records.FORMAT_VERSION}, made {shown_time(header.created_ms)}"
            if header.number != file.number:
                damages.append(Damage(name, 16, f"the header says segment {header.number}", torn=False))
        except CodecError as error:
            damages.append(Damage(name, 0, str(error), torn=is_last and records.is_blank(data)))
            if isinstance(error, VersionError):
                data = b""
        say(f"{name}: {made}, {self._records_of(file, data, damages, is_last=is_last)}")
        weighed = self._found_in(name)
        known = {damage.offset for damage in weighed}
        self._tell_of_damages([*weighed, *(damage for damage in damages if damage.offset not in known)])

    def _found_in(self, name: str) -> list[Damage]:
        """The known damage of a file, and its cost."""
        examined = self._examined
        return [] if examined is None else [damage for damage in examined.damages if damage.name == name]

    def _records_of(self, file: LogFile, data: bytes, damages: list[Damage], *, is_last: bool) -> str:
        name = file.path.name
        replayed = Replayed()
        segment = Segment(file.number, name, 0)
        lsns: list[int] = []
        times: list[int] = []
        end = FILE_HEADER_BYTES
        for record in whole_records(name, data, damages, is_last=is_last):
            end = record.end
            lsns.append(record.lsn)
            try:
                if record.type_code == records.BATCH:
                    times.append(codec.decode_batch(record.payload).now_ms)
                apply(replayed, record, segment)
            except (CodecError, ValueError, LookupError, struct.error) as error:
                damages.append(Damage(name, record.offset, f"an unreadable payload: {error}", torn=False))
        self._record_count += len(lsns)
        parts = [many(len(lsns), "record")]
        if lsns:
            parts.append(f"lsn {min(lsns)} to {max(lsns)}")
        if times:
            parts.append(f"{shown_time(min(times))} to {shown_time(max(times))}")
        return ", ".join([*parts, f"{end} of {len(data)} bytes used"])

    def _tell_of_damages(self, damages: list[Damage]) -> None:
        for damage in damages:
            what = "an incomplete write" if damage.torn else "DAMAGED"
            self._damage_count += not damage.torn
            say(f"  at byte {damage.offset}: {what}: {damage.reason}{damage.cost}")

    def _tell_of_gaps(self) -> None:
        """Report gaps in retained files, which never have holes. Missing journal files are reported elsewhere."""
        for before, behind in zip(self._files, self._files[1:], strict=False):
            if self._is_retained and behind.number != before.number + 1:
                self._damage_count += 1
                say(f"DAMAGED: files {before.number + 1} to {behind.number - 1} are missing")

    # ---- all of them -----------------------------------------------------------------------------

    def _tell_of_all(self, examined: Examined) -> None:
        disk = ReadOnlyDisk(self._directory)
        given_up = read_given_up(disk)
        faults = [*examined.stored.faults, *read_copy(disk)[1], *([given_up.fault] if given_up.fault else ())]
        for fault in faults:
            self._damage_count += 1
            say(f"DAMAGED: {fault}")
        for line in orphan_lines(examined):
            say(line)
        for name in examined.restored:
            say(f"{name} is only in the copy of bindings")
        examined.index.drop_orphans()
        examined.absent = missing_files(examined.index, self._data, given_up.names)
        self._tell_of_queues(examined)
        self._tell_of_pages(examined)
        self._tell_of_bodies(examined)

    def _tell_of_queues(self, examined: Examined) -> None:
        index = examined.index
        counts = messages_by_queue(index)
        say(f"live: {many(len(index.home), 'message')} in {many(len(counts), 'durable queue')}")
        pages = index.pages.pages()
        if pages:
            say(f"and {sum(map(index.pages.left, pages)):,} in {many(len(pages), 'page')}: see artemis-py pages list")
        for queue_id, count in counts.items():
            say(f"  {index.queues[queue_id].get('name', '?')} (queue {queue_id}): {many(count, 'message')}")

    def _tell_of_pages(self, examined: Examined) -> None:
        """Report missing pages. ``artemis-py pages`` checks the others."""
        missing = missing_pages(examined.index, names_in(self._data.pages))
        if missing and not self._data.pages:
            say(f"pages: {len(missing)} with messages, not checked; name their directory with --paging DIR")
            return
        for name in sorted(missing.keys() - _names_of(examined.absent)):
            self._damage_count += 1
            say(f"  DAMAGED: {name}, with {many(missing[name], 'message')}, is missing")

    def _tell_of_bodies(self, examined: Examined) -> None:
        """Report large bodies that living messages need. If all are missing, that is one loss, reported later."""
        index = examined.index
        messages = [segment.live[message_id].message for message_id, segment in index.home.items()]
        large = [(message.id, message.body) for message in messages if isinstance(message.body, LargeBody)]
        if not large:
            return
        if not self._data.bodies:
            say(f"large: {many(len(large), 'body', 'bodies')}, not checked; name their directory with --large DIR")
            return
        say(f"large: {many(len(large), 'body', 'bodies')}, {many(sum(len(body) for _, body in large), 'byte')}")
        absent = _names_of(examined.absent)
        for message_id, body in large:
            name = body_name(body.number, durable=True)
            if name in absent:
                continue
            path = find_body(body.number, self._data.bodies)
            found = 0 if path is None else path.stat().st_size
            fault = None
            if path is None or found < body.size_bytes:
                fault = "is missing" if path is None else f"has {found} bytes"
            elif body.checksum not in {-1, checksum_of(path, body.size_bytes)}:
                fault = "has changed: its checksum does not match"
            if fault is not None:
                self._damage_count += 1
                say(f"  DAMAGED: message {message_id} needs {body.size_bytes} bytes of {name}, which {fault}")


def _names_of(absent: list[MissingFiles]) -> set[str]:
    return {name for one in absent for name in one.names}


def run_repair(directory: Path, *, write: bool) -> int:
    """Reports what a repair keeps and loses; with ``write``, carries it out. Returns the exit code."""
    lock = DirectoryLock(directory)
    try:
        disk = ReadOnlyDisk(directory)
        examined = examine(disk)
        for line in (*(f"LOST: {reason}" for reason in examined.reasons), *orphan_lines(examined)):
            say(line)
        for damage in examined.damages:
            say(damage)
        say(f"kept: {what_is_left(examined)}")
        if examined.is_whole and not examined.reasons:
            say("nothing to repair")
            return 0
        if not write:
            say("nothing was changed; --write writes a clean journal and keeps the old files in a folder")
            return EXIT_LOSS if examined.reasons else EXIT_DAMAGED
        sizes = [reading.header.made_bytes for reading in examined.readings if reading.header is not None]
        done = repair(directory, max([_FILE_BYTES_MIN, *sizes]))
        say(f"repaired: {many(done.messages, 'message')} outside pages; the old files are in {done.folder}")
        return 0
    finally:
        lock.release()


_FILE_BYTES_MIN: Final = 1 << 20
