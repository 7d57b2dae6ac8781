"""The audit log has who asked for what they may not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.process import ports_left_out
from tests.kit.secured import basic, secured_broker

pytestmark = pytest.mark.e2e


def test_who_may_not_is_told(tmp_path: Path) -> None:
    """Also who only wanted to look; who did not log in is no user, and is asked to."""
    with secured_broker(tmp_path) as broker:
        assert broker.ask("POST", "/api/queues/jobs/pause", Authorization=basic("bob")).status == 403
        assert broker.ask("DELETE", "/api/queues/jobs", Authorization=basic("eve")).status == 403
        assert broker.ask("GET", "/api/queues", Authorization=basic("eve")).status == 403
        assert broker.ask("POST", "/api/queues/jobs/pause").status == 401
        assert broker.ask("POST", "/api/queues/jobs/pause", Authorization=basic("ann")).status == 200
        lines = ports_left_out([line for line in broker.said.splitlines() if "AUD-100" in line])
    denied = [line.partition("AUD-1002 ")[2] for line in lines if "AUD-1002" in line]
    assert [line.partition(" result=")[0] for line in denied] == [
        "operation=queue.pause queue=jobs user=bob from=127.0.0.1:PORT",
        "operation=destroyQueue queue=jobs user=eve from=127.0.0.1:PORT",
        "operation=listQueues user=eve from=127.0.0.1:PORT",
    ]
    assert "does not have permission" in denied[0]
    assert denied[0].endswith("operation denied")
    assert [line.partition("AUD-1001 ")[2].partition(" result=")[0] for line in lines if "AUD-1001" in line] == [
        "operation=queue.pause queue=jobs user=ann from=127.0.0.1:PORT"
    ]
