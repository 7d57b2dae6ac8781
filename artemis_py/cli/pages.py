"""``artemis-py pages``: shows the page files of a stopped broker, or of a copy. Changes nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from artemis_py.cli.journal_reading import ReadOnlyDisk, fields_of, summary_of
from artemis_py.cli.options import add_json
from artemis_py.errors import ArtemisError
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.log_events import event_of
from artemis_py.storage.format.names import page_numbers
from artemis_py.storage.format.records import CodecError, Record
from artemis_py.storage.pages import PageIndex
from artemis_py.storage.recovery.examination import examine
from artemis_py.terminal_output import as_json, many, say, say_made, warn
from artemis_py.text_table import Column, print_table

HELP: Final = "list the pages of a stopped broker and their messages"
EXIT_DAMAGED: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``list DIR [--journal DIR] [--json]`` and ``dump FILE [--json]``."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="list|dump")
    listing = commands.add_parser("list", help="print one line per page; exit code 1 when a page is damaged")
    listing.add_argument("directory", type=Path, metavar="DIR", help="paging-directory")
    listing.add_argument(
        "--journal",
        type=Path,
        metavar="DIR",
        help=("journal-directory; with it, the list also says how many messages queues still need"),
    )
    dump = commands.add_parser("dump", help="print one line per message of a page")
    dump.add_argument("file", type=Path, metavar="FILE", help="a page file")
    for each in (listing, dump):
        add_json(each, "one object per line", people="table")


@dataclass
class PageFile:
    """The content of one page file."""

    file: str
    address: str = "?"
    stream: int = 0
    page: int = 0
    messages: int = 0
    transient: int = 0
    places: list[int] = field(default_factory=list)
    size_bytes: int = 0
    left: int | None = None
    """Persistent messages that queues still need, over all queues; None without the journal."""
    damages: list[str] = field(default_factory=list)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand. Raises ArtemisError if there is nothing to read."""
    try:
        return _list(args) if args.command == "list" else _dump(args)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ArtemisError(f"{error.filename}: {error.strerror}") from None


def _list(args: argparse.Namespace) -> int:
    paths = sorted(path for path in args.directory.rglob("*.page") if page_numbers(path.name) is not None)
    for directory in filter(None, (args.directory, args.journal)):
        if not directory.is_dir():
            raise ArtemisError(f"{directory} is not a directory")
    index = None if args.journal is None else examine(ReadOnlyDisk(args.journal)).index.pages
    found = [_look_at(path, index) for path in paths]
    if args.format == "json":
        for one in found:
            say_made(as_json(asdict(one)))
    else:
        _print_table(found, with_left=index is not None)
    for one in found:
        for damage in one.damages:
            warn(f"{one.file} {damage}")
    return EXIT_DAMAGED if any(one.damages for one in found) else 0


def _look_at(path: Path, index: PageIndex | None) -> PageFile:
    stream, number = page_numbers(path.name) or (0, 0)
    found = PageFile(path.name, stream=stream, page=number, size_bytes=path.stat().st_size)
    page = None if index is None else index.find(stream, number)
    if index is not None:
        found.left = 0 if page is None else index.left(page)
    for record in _records(path, found.damages):
        if record.type_code == records.ADDRESS:
            found.address = str(codec.decode_fields(record.payload).get("name", "?"))
        elif record.type_code == records.PAGED:
            found.messages += 1
            found.transient += bool(codec.decode_paged(record.payload)[1].flags & records.FLAG_TRANSIENT)
            found.places = [found.places[0] if found.places else record.lsn, record.lsn]
    return found


def _records(path: Path, damages: list[str]) -> Iterator[Record]:
    """The valid records of a page up to the first invalid one; damage goes to ``damages``."""
    data = path.read_bytes()
    try:
        header = records.decode_file_header(data)
        if header.kind != records.KIND_PAGE:
            raise CodecError("this is not a page")
    except CodecError as error:
        damages.append(f"at byte 0: {error}")
        return

    def behind(offset: int, reason: str) -> int:
        if reason:
            damages.append(f"at byte {offset}: {reason} (data that a crash left after the last batch is ignored)")
        return -1

    yield from records.read_records(data, records.FILE_HEADER_BYTES, behind)


def _print_table(found: list[PageFile], *, with_left: bool) -> None:
    heads = ["page", "messages", "transient", *(["left"] if with_left else []), "KiB", "places", "address"]
    texts = ("page", "places", "address")
    rows: list[list[str]] = []
    for one in found:
        left = [str(one.left)] if with_left else []
        places = f"{one.places[0]} to {one.places[1]}" if one.places else "-"
        kib = f"{one.size_bytes / 1024:.1f}"
        rows.append([one.file, str(one.messages), str(one.transient), *left, kib, places, one.address])
    print_table([Column(head, is_number=head not in texts) for head in heads], rows)
    total = sum(one.messages for one in found)
    size = sum(one.size_bytes for one in found)
    addresses = many(len({one.stream for one in found}), "address", "addresses")
    say(f"in all: {many(len(found), 'page')} of {addresses}, {many(total, 'message')}, {many(size, 'byte')}")


def _dump(args: argparse.Namespace) -> int:
    damages: list[str] = []
    for record in _records(args.file, damages):
        if record.type_code == records.PAGED:
            if args.format == "json":
                say_made(as_json({"place": record.lsn, **fields_of(event_of(record))}))
            else:
                say(f"{record.lsn:>12}  {summary_of(event_of(record))}")
    for damage in damages:
        warn(f"{args.file.name} {damage}")
    return EXIT_DAMAGED if damages else 0
