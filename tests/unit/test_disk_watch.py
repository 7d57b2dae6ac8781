"""``max-disk-usage``, ``min-disk-free`` and ``disk-full-policy``, on a disk that the test fills."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.core.transactions import Transaction
from artemis_py.server.disk_watch import DiskWatch
from artemis_py.server.store import TransientStore
from artemis_py.storage.disk.space import DiskSpace, space_of
from tests.kit.core import broker_of, queue_config, send


@dataclass(eq=False)
class Disk:
    """A disk that is as full as it is told to be."""

    space: DiskSpace | None = field(default_factory=lambda: DiskSpace(0.5, 1000))
    others: dict[str, DiskSpace] = field(default_factory=dict)
    """Directories on file systems of their own."""
    lines: list[str] = field(default_factory=list)
    turned: Mock = field(default_factory=Mock)

    def probe(self, directory: str) -> DiskSpace:
        if self.space is None:
            raise OSError(5, "Input/output error")
        return self.others.get(directory, self.space)


def watched(policy: str = "BLOCK", limits: dict[str, Any] | None = None, **core: Any) -> tuple[Broker, Disk, DiskWatch]:
    """A broker with one queue whose address has this disk-full-policy, its disk, and who looks at it."""
    settings = {"#": {"disk_full_policy": policy} | (limits or {})}
    broker = broker_of(queue_config(), settings=settings, **core)
    disk = Disk()
    config = BrokerConfig(**core)
    return broker, disk, DiskWatch(config, broker, disk.turned, probe=disk.probe, say=disk.lines.append)


@pytest.mark.parametrize(
    ("core", "used_fraction", "free_bytes", "full"),
    [
        ({}, 0.89, 1, False),
        ({}, 0.9, 1, True),
        ({"max_disk_usage": 50}, 0.5, 1, True),
        ({"max_disk_usage": 50}, 0.49, 1, False),
        ({"max_disk_usage": -1}, 1.0, 0, False),
        ({"min_disk_free": 100}, 0.99, 101, False),
        ({"min_disk_free": 100}, 0.01, 100, True),
        ({"min_disk_free": 100, "max_disk_usage": 1}, 0.5, 101, False),
    ],
)
def test_when_a_disk_is_full(core: dict[str, Any], used_fraction: float, free_bytes: int, full: bool) -> None:
    broker, disk, watch = watched(**core)
    disk.space = DiskSpace(used_fraction, free_bytes)
    watch.check()
    assert broker.memory.disk_full is full


@pytest.mark.parametrize(("policy", "taken", "kept"), [("BLOCK", 0, 0), ("FAIL", 0, 0), ("DROP", 3, 0)])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_size_messages": 100, "address_full_policy": "DROP"},
        {"max_size_messages": 0, "address_full_policy": "PAGE"},
    ],
)
def test_what_a_full_disk_means_to_senders(policy: str, taken: int, kept: int, limits: dict[str, Any]) -> None:
    broker, disk, watch = watched(policy, limits)
    disk.space = DiskSpace(0.95, 5)
    watch.check()
    address = broker.addresses["a"]
    assert (address.full_policy, address.is_full) == (policy, True)
    assert send(broker, count=3) == taken
    assert broker.queues["q"].message_count == kept
    disk.space = DiskSpace(0.5, 500)
    watch.check()
    assert not address.is_full
    assert send(broker, count=3) == 3
    assert broker.queues["q"].message_count == 3


def test_a_commit_waits_for_the_disk() -> None:
    broker, disk, watch = watched()
    transaction = Transaction()
    send(broker, within=transaction)
    assert transaction.blocked_by() is None
    disk.space = DiskSpace(0.95, 5)
    watch.check()
    assert transaction.blocked_by() is broker.addresses["a"]


def test_an_address_made_meanwhile_is_full_too() -> None:
    broker, disk, watch = watched("FAIL")
    disk.space = DiskSpace(0.95, 5)
    watch.check()
    assert send(broker, "new") == 0
    assert broker.addresses["new"].is_full


def test_only_news_are_told() -> None:
    """And each has a turn made, in which waiting senders go on; so has each look at a full disk: there retention may
    make room.
    """
    _, disk, watch = watched()
    for fraction in (0.5, 0.95, 0.96, 0.5, 0.4):
        disk.space = DiskSpace(fraction, 1 << 20)
        watch.check()
    assert [line.partition(" (")[0] for line in disk.lines] == [
        "warning: the disk of data/journal is full",
        "the disk of data/journal has room again",
    ]
    assert "95% used, 1 MiB free; max-disk-usage 90 %" in disk.lines[0]
    assert disk.turned.call_count == 3


@pytest.mark.parametrize("directory", ["data/paging", "data/largemessages"])
def test_the_disks_of_pages_and_large_bodies_count_too(directory: str) -> None:
    """They may be on file systems of their own, and fill up as well."""
    broker, disk, watch = watched()
    disk.others[directory] = DiskSpace(0.95, 5)
    watch.check()
    assert broker.memory.disk_full
    disk.others.clear()
    watch.check()
    assert not broker.memory.disk_full
    assert [line.partition(" (")[0] for line in disk.lines] == [
        f"warning: the disk of {directory} is full",
        f"the disk of {directory} has room again",
    ]


def test_a_disk_that_cannot_be_looked_at_changes_nothing() -> None:
    broker, disk, watch = watched()
    disk.space = DiskSpace(0.95, 5)
    watch.check()
    disk.space = None
    watch.check()
    watch.check()
    assert broker.memory.disk_full
    assert disk.lines[1:] == ["warning: the disk usage of data/journal cannot be read: Input/output error"]


def test_a_real_file_system(tmp_path: Path) -> None:
    space = space_of(str(tmp_path))
    assert 0 <= space.used_fraction <= 1
    assert space.free_bytes == pytest.approx(os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize, rel=0.05)


@pytest.mark.parametrize("kind", ["page", "body"])
def test_without_persistence_it_is_looked_at_from_the_first_file_on(tmp_path: Path, kind: str) -> None:
    """They filled the disk, whatever ``max-disk-usage`` said."""
    config = BrokerConfig(
        persistence_enabled=False,
        paging_directory=str(tmp_path / "paging"),
        large_messages_directory=str(tmp_path / "large"),
    )
    looks: list[int] = []
    store = TransientStore(config, lambda: None, lambda: looks.append(1))
    broker = broker_of(queue_config())
    disk = Disk()
    disk.space = DiskSpace(0.95, 5)
    watch = DiskWatch(config, broker, disk.turned, store, probe=disk.probe, say=disk.lines.append)
    watch.check()
    assert not broker.memory.disk_full, "nothing is on that disk"
    folder = store.folders[kind == "body"]
    folder.create("file", 1)
    assert len(looks) == 1
    watch.check()
    assert broker.memory.disk_full
    assert store.large is not None
    assert store.large.body_writer.is_full
    folder.write("file", 0, bytes(2 << 20))
    assert len(looks) == 2, "before it grows by so much"
    disk.space = DiskSpace(0.5, 1000)
    watch.check()
    assert not broker.memory.disk_full
    store.close()
