"""A log in memory that notes what the core tells it."""

from __future__ import annotations

import json
from typing import Any

from artemis_py.message import Message
from artemis_py.record_log import Actor, MemoryLog


class NotedLog(MemoryLog):
    """``told`` are its records in order, each with what it is about; a group begins and ends with None."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, Any]] = []

    def published(self, message: Message, queue_ids: list[int], due_ms: int) -> int:
        self.told.append(("published", message.id))
        return 0

    def settled(self, queue_id: int, messages: list[Message], reason: str, consumer: Actor | None = None) -> int:
        self.told += [("settled", reason)] * len(messages)
        return 0

    def queue_changed(self, fields: dict[str, Any]) -> int:
        self.told.append(("queue_changed", json.loads(json.dumps(fields))))
        return 0

    def duplicate_id(self, address: str, duplicate_id: str) -> int:
        self.told.append(("duplicate_id", (address, duplicate_id)))
        return 0

    def begin_group(self, *, transactional: bool = False) -> None:
        self.told.append(("begin_group", None))

    def end_group(self) -> int:
        self.told.append(("end_group", None))
        return 0

    def of(self, record: str) -> list[Any]:
        """What records of one kind are about."""
        return [about for name, about in self.told if name == record]
