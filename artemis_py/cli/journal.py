"""``artemis-py journal``: look into the files of a stopped broker, a retention directory or a copy. Changes nothing."""

from __future__ import annotations

import argparse
import fcntl
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from artemis_py.cli.journal_records import fields_of, shown_time, summary_of
from artemis_py.errors import ArtemisError
from artemis_py.message import LargeBody
from artemis_py.storage import codec
from artemis_py.storage.body_names import body_name, find_body
from artemis_py.storage.codec import FILE_HEADER_BYTES, CodecError, Record, VersionError
from artemis_py.storage.index import Segment
from artemis_py.storage.recovery import Recovered, apply
from artemis_py.storage.scan import Damage, LogFile, inner_records, log_files, whole_records

HELP: Final = "verify or dump the journal files of a stopped broker"
EXIT_DAMAGED: Final = 1
_CODES: Final = {name: code for code, name in codec.RECORD_NAMES.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``verify DIR`` and ``dump DIR [--format json] [--type message,settled] [--lsn A..B]``."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="verify|dump")
    verify = commands.add_parser("verify", help="check every record; exit code 1 when something is damaged")
    dump = commands.add_parser("dump", help="print every record on a line of its own")
    for each in (verify, dump):
        each.add_argument("directory", type=Path, metavar="DIR", help="journal-directory, or where files were retained")
    verify.add_argument(
        "--large",
        type=Path,
        metavar="DIR",
        help="large-messages-directory; by default largemessages or large beside the first",
    )
    dump.add_argument("--format", choices=("table", "json"), default="table", help="json: one object on each line")
    dump.add_argument(
        "--type", type=_types, default=frozenset(_CODES.values()), metavar="NAMES", help=", ".join(_CODES)
    )
    dump.add_argument(
        "--lsn", type=_lsn_range, default=(0, None), metavar="A..B", help="bounds included; either may lack"
    )


def _types(text: str) -> frozenset[int]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in _CODES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no type {unknown[0]!r}; there are {', '.join(_CODES)}")
    return frozenset(_CODES[name] for name in names)


def _lsn_range(text: str) -> tuple[int, int | None]:
    low, dots, high = text.partition("..")
    if not all(part.isdecimal() or not part for part in (low, high)) or text in ("", ".."):
        raise argparse.ArgumentTypeError(f"{text!r} is no range: write 10..20, 10.., ..20 or 10")
    first = int(low or 0)
    return first, (int(high) if high else None if dots else first)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand. Raises ArtemisError when the directory cannot be read or has no journal files."""
    directory: Path = args.directory
    try:
        files = log_files([directory])
        if not files:
            raise ArtemisError(f"{directory} has no journal files")
        holder = _holder(directory)
        if holder is not None:
            print(f"note: a broker{holder} is using {directory}: its last batch may be unfinished", file=sys.stderr)
        if args.command == "verify":
            return Verification(files, _body_directories(directory, args.large)).run()
        return _dump(files, args.format == "json", args.type, args.lsn)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ArtemisError(f"{error.filename or directory}: {error.strerror}") from None


def _holder(directory: Path) -> str | None:
    """Which process holds the lock of the directory, as `` (process N)``; None when nobody does."""
    try:
        with (directory / "server.lock").open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                number = lock.read(32).decode(errors="replace").strip()
                return f" (process {number})" if number else ""
    except FileNotFoundError:
        pass
    return None


def _body_directories(directory: Path, told: Path | None) -> list[Path]:
    """Where large bodies may be."""
    if told is not None:
        return [told]
    beside = directory.absolute().parent
    return [path for path in (beside / "largemessages", beside / "large") if path.is_dir()]


# ---- verify --------------------------------------------------------------------------------------


class Verification:
    """Goes through files and tells of each, then of what lives in all of them together."""

    def __init__(self, files: list[LogFile], body_directories: list[Path]) -> None:
        self._files = files
        self._body_directories = body_directories
        self._recovered = Recovered()
        self._damage_count = 0
        self._record_count = 0

    def run(self) -> int:
        """Prints what it finds; returns the exit code."""
        for file in self._files:
            self._check(file, is_last=file is self._files[-1])
        if not any(file.closed_ms is not None for file in self._files):
            self._tell_of_queues()
            self._tell_of_bodies()
        verdict = f"{self._damage_count} DAMAGED places" if self._damage_count else "no damage"
        print(f"in all: {len(self._files)} files, {self._record_count} records, {verdict}")
        return EXIT_DAMAGED if self._damage_count else 0

    def _check(self, file: LogFile, *, is_last: bool) -> None:
        data = file.path.read_bytes()
        name = file.path.name
        damages: list[Damage] = []
        if not any(data):
            print(f"{name}: made and never written to")
            return
        try:
            header = codec.decode_file_header(data)
            made = f"format {codec.FORMAT_VERSION}, made {shown_time(header.created_ms)}"
            if header.number != file.number:
                damages.append(Damage(name, 16, f"the header says segment {header.number}", torn=False))
        except CodecError as error:
            made = "no header"
            damages.append(Damage(name, 0, str(error), torn=is_last and codec.is_blank(data)))
            if isinstance(error, VersionError):
                data = b""
        print(f"{name}: {made}, {self._records_of(file, data, damages, is_last=is_last)}")
        for damage in damages:
            self._tell_of_damage(damage)

    def _records_of(self, file: LogFile, data: bytes, damages: list[Damage], *, is_last: bool) -> str:
        name = file.path.name
        segment = Segment(file.number, name, 0)
        lsns: list[int] = []
        times: list[int] = []
        end = FILE_HEADER_BYTES
        for record in whole_records(name, data, damages, is_last=is_last):
            end = record.end
            lsns.append(record.lsn)
            try:
                if record.type_code == codec.BATCH:
                    times.append(codec.decode_batch(record.payload).now_ms)
                apply(self._recovered, record, segment)
            except (CodecError, ValueError, LookupError, struct.error) as error:
                damages.append(Damage(name, record.offset, f"a payload that says nothing: {error}", torn=False))
        self._record_count += len(lsns)
        parts = [f"{len(lsns)} records"]
        if lsns:
            parts.append(f"lsn {min(lsns)} to {max(lsns)}")
        if times:
            parts.append(f"{shown_time(min(times))} to {shown_time(max(times))}")
        return ", ".join([*parts, f"{end} of {len(data)} bytes used"])

    def _tell_of_damage(self, damage: Damage) -> None:
        what = "an unfinished write" if damage.torn else "DAMAGED"
        self._damage_count += not damage.torn
        print(f"  at byte {damage.offset}: {what}: {damage.reason}")

    def _tell_of_queues(self) -> None:
        index = self._recovered.index
        index.drop_orphans()
        counts = dict.fromkeys(index.queues, 0)
        for message_id, segment in index.home.items():
            for queue_id in segment.live[message_id].queue_ids:
                counts[queue_id] += 1
        print(f"live: {len(index.home)} messages in {len(counts)} durable queues")
        pages = index.pages.pages()
        for page in pages:
            for queue_id in page.durable:
                counts[queue_id] += index.pages.left_of(queue_id, page)
        if pages:
            print(f"and {sum(map(index.pages.left, pages))} in {len(pages)} pages: see artemis-py pages list")
        for queue_id, count in counts.items():
            print(f"  {index.queues[queue_id].get('name', '?')} (queue {queue_id}): {count} messages")

    def _tell_of_bodies(self) -> None:
        """Large bodies that living messages need."""
        index = self._recovered.index
        messages = [segment.live[message_id].message for message_id, segment in index.home.items()]
        large = [(message.id, message.body) for message in messages if isinstance(message.body, LargeBody)]
        if not large:
            return
        if not self._body_directories:
            print(f"large: {len(large)} bodies, not looked at: --large DIR tells where they are")
            return
        print(f"large: {len(large)} bodies, {sum(len(body) for _, body in large)} bytes")
        for message_id, body in large:
            path = find_body(body.number, self._body_directories)
            found = 0 if path is None else path.stat().st_size
            if found < body.size_bytes:
                self._damage_count += 1
                fault = "is missing" if path is None else f"has {found} bytes"
                name = body_name(body.number, durable=True)
                print(f"  DAMAGED: message {message_id} needs {body.size_bytes} bytes of {name}, which {fault}")


# ---- dump ----------------------------------------------------------------------------------------


def _dump(files: list[LogFile], as_json: bool, types: frozenset[int], lsns: tuple[int, int | None]) -> int:
    code = 0
    if not as_json:
        print(f"{'lsn':>12}  {'time':<24}  {'type':<21}  what")
    for file in files:
        damages: list[Damage] = []
        for record, time_ms, group in _records(file, damages, is_last=file is files[-1]):
            is_near = record.lsn >= lsns[0] and (lsns[1] is None or record.lsn <= lsns[1])
            if is_near and record.type_code in types:
                print(_json(file, record, time_ms, group) if as_json else _line(record, time_ms, group))
        for damage in damages:
            print(damage, file=sys.stderr)
            code = code if damage.torn else EXIT_DAMAGED
    return code


def _records(file: LogFile, damages: list[Damage], *, is_last: bool) -> Iterator[tuple[Record, int, int]]:
    """The records of a file, those inside groups too, each with its batch's time and its group's lsn (0: none)."""
    data = file.path.read_bytes()
    try:
        codec.decode_file_header(data)
    except VersionError:
        raise
    except CodecError as error:
        if any(data):
            damages.append(Damage(file.path.name, 0, str(error), torn=is_last and codec.is_blank(data)))
    time_ms = 0
    for record in whole_records(file.path.name, data, damages, is_last=is_last):
        if record.type_code == codec.BATCH:
            time_ms = codec.decode_batch(record.payload).now_ms
        yield record, time_ms, 0
        if record.type_code == codec.GROUP:
            for inner in inner_records(record.payload):
                yield inner, time_ms, record.lsn


def _line(record: Record, time_ms: int, group: int) -> str:
    name = codec.RECORD_NAMES.get(record.type_code, str(record.type_code))
    inside = f" (in group {group})" if group else ""
    return f"{record.lsn:>12}  {shown_time(time_ms):<24}  {name:<21}  {summary_of(record)}{inside}"


def _json(file: LogFile, record: Record, time_ms: int, group: int) -> str:
    place = {"file": file.path.name, "offset": None if group else record.offset}
    name = codec.RECORD_NAMES.get(record.type_code, str(record.type_code))
    fields = {"lsn": record.lsn, "time_ms": time_ms, "type": name, "group": group or None, **place}
    return json.dumps({**fields, **fields_of(record)}, ensure_ascii=False)
