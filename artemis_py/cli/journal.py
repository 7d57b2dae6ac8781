"""``artemis-py journal``: inspects and repairs the files of a stopped broker, a retention directory or a copy.

Only ``repair --write`` changes anything.
"""

from __future__ import annotations

import argparse
import fcntl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from artemis_py.cli.journal_records import fields_of, summary_of
from artemis_py.cli.journal_verify import EXIT_DAMAGED, Verification, run_repair
from artemis_py.cli.output_form import add_json
from artemis_py.cli.read_only import ReadOnlyDisk
from artemis_py.errors import ArtemisError
from artemis_py.shown import as_json as json_text
from artemis_py.shown import say, say_made, shown_time, warn
from artemis_py.storage.disk.lock import LOCK_NAME, owner_in, read_lock_file
from artemis_py.storage.format import records
from artemis_py.storage.format.reader import LogEntry, Range, read_entries
from artemis_py.storage.format.scan import Damage, LogFile, log_files
from artemis_py.storage.journal.extent import read_extent
from artemis_py.storage.recovery.examination import MOVES_NAME
from artemis_py.storage.recovery.missing_files import DataDirectories

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
