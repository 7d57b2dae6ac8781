"""What ``artemis-py check`` says of messages: a start is tried in memory, with what the journal has, and nothing is
written.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from artemis_py.cli.read_only import ReadOnlyDisk
from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.errors import ArtemisError, Problem
from artemis_py.management.affected import Affected, affected_by
from artemis_py.message import Message
from artemis_py.paged import Page
from artemis_py.records import Chunk, MemoryLog, PageLog
from artemis_py.server.store import unread_journal
from artemis_py.shown import many
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.recovery.examination import examine

KEPT: Final = "kept-messages"
"""The code of what stays as it is for the sake of messages, and of journals that are not read."""
LOST: Final = "loses-messages"
"""The code of what takes messages away."""
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


_RUNNING: Final = "artemis-py diff --running tells what the file does to the messages of a running broker"


def _note(config: BrokerConfig, text: str) -> Problem:
    return Problem("note", config.file, 0, text, code=KEPT)


def _told(broker: Broker, config: BrokerConfig) -> list[Problem]:
    affected = Affected()
    for _ in affected_by(broker, config, affected):
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
