"""A queue that is filled from the log, on real disks, with a body that only readers of the log still had. Kills are in
tests/sim/test_filling.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.client import connected
from tests.kit.process import configuration, retained, started

pytestmark = pytest.mark.e2e

DESK = '<address name="orders"><anycast><queue name="desk"/></anycast></address>'
VIEW = '<address name="audit"><anycast><queue name="audit" underlying-address="orders"/></anycast></address>'
SETTINGS = """<address-setting match="#"><max-size-messages>50</max-size-messages>
<page-size-bytes>100K</page-size-bytes></address-setting>"""


def test_A_61_large_bodies_that_only_readers_of_the_log_had(tmp_path: Path) -> None:
    """They stay where the log keeps them, as long as a queue needs them; also after a restart."""
    file, body = tmp_path / "broker.xml", b"x" * 300_000
    core = f"<journal-file-size>64K</journal-file-size>{retained(tmp_path)}"
    file.write_text(configuration(folder=tmp_path, core=core, addresses=DESK, settings=SETTINGS), "utf-8")
    with started(file) as broker:
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "orders", "persistent": "true"}, body)
            client.subscribe("orders::desk")
            client.acknowledge(client.message())
        broker.eventually("retired", lambda: len(list((tmp_path / "kept" / "large").glob("*.body"))), lambda n: n == 1)
        assert broker.stop() == 0
    file.write_text(configuration(folder=tmp_path, core=core, addresses=DESK + VIEW, settings=SETTINGS), "utf-8")
    for _ in range(2):
        with started(file) as broker:
            broker.await_count("audit", 1)
            broker.kill()
    with started(file) as broker, connected(broker.port) as client:
        client.subscribe("audit::audit")
        assert client.message().body == body
