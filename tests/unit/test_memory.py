"""How much memory the process may use, and what follows for ``global-max-size``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from artemis_py.server.memory import destinations_max, global_max_bytes, usable_bytes

MACHINE_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
@pytest.mark.parametrize(
    ("text", "usable"),
    [("100000000", 100_000_000), ("max", MACHINE_BYTES), (str(1 << 62), MACHINE_BYTES), ("rubbish", MACHINE_BYTES)],
)
def test_a_container_has_less_than_the_machine(tmp_path: Path, name: str, text: str, usable: int) -> None:
    path = tmp_path / "sys/fs/cgroup" / name
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n", "ascii")
    assert usable_bytes(tmp_path) == usable


def test_half_of_it_is_the_default() -> None:
    assert global_max_bytes(-1) == usable_bytes() // 2
    assert global_max_bytes(12345) == 12345


def test_addresses_and_queues_fit_into_a_quarter_by_default() -> None:
    assert destinations_max(None) * 4096 <= usable_bytes() // 4 < (destinations_max(None) + 1) * 4096
    assert (destinations_max(-1), destinations_max(0), destinations_max(7)) == (-1, 0, 7)
