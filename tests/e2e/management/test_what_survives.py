"""What operators made and changed, after a real process was killed, and after it stopped in good order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.management.told import operated, stored

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_what_a_restart_knows(tmp_path: Path, how: str) -> None:
    """The answer to a change comes when the change survives a crash."""
    with operated(stored(tmp_path), tmp_path) as told:
        told.asked(
            "POST", "/api/queues", {
                "name": "chores", "address": "tasks", "routing-type": "ANYCAST", "max-consumers": 2,
                "filter-string": "kind = 'a'", "dead-letter-address": "dead",
            },
        )  # fmt: skip
        told.asked("PATCH", "/api/queues/chores", {"max-consumers": 7, "ring-size": 3})
        told.asked("PATCH", "/api/queues/jobs", {"max-consumers": 9})
        told.asked("POST", "/api/queues/orders/ring-size", {"ring-size": 4})
        told.asked("POST", "/api/queues/chores/disable")
        told.asked("POST", "/api/addresses", {"address": "news", "routing-types": "ANYCAST,MULTICAST"})
        told.asked("POST", "/api/addresses/news/pause")
        told.asked("POST", "/api/addresses/jobs/pause")
        told.asked("POST", "/api/addresses/jobs/block")
        told.asked("DELETE", "/api/queues/odd%20%2F%20name?auto-delete-address=true")
        told.asked("POST", "/api/queues?name=short")
        told.asked("DELETE", "/api/queues/short?auto-delete-address=true")
        setting = {"address": "news", "values": ["max-delivery-attempts=3", "max-size-bytes=1M"]}
        told.asked("POST", "/api/settings", setting)
        told.asked("POST", "/api/settings", {**setting, "address": "gone"})
        told.asked("DELETE", "/api/settings/gone")
        twice = {"name": "twice", "address": "orders", "forwarding-address": "jobs", "filter-string": "kind = 'a'"}
        told.asked("POST", "/api/diverts", twice)
        told.asked("PATCH", "/api/diverts/twice", {"forwarding-address": "short"})
        told.asked("POST", "/api/diverts", {**twice, "name": "gone"})
        told.asked("DELETE", "/api/diverts/gone")
        if how == "stopped":
            assert told.broker.stop() == 0
        told.broker.kill()
    with operated(stored(tmp_path), tmp_path) as told:
        shown = {name: told.ask("GET", f"/api/settings/{name}?where=isDefault=false")[1] for name in ("news", "gone")}
        ours = {row["name"]: row["value"] for row in shown["news"]["data"] if row["declaredAt"] == "an operator"}
        assert ours == {"max-delivery-attempts": "3", "max-size-bytes": "1048576"}
        assert not [row for row in shown["gone"]["data"] if row["declaredAt"] == "an operator"]
        (divert,) = told.ask("GET", "/api/diverts")[1]["data"]
        assert (divert["name"], divert["forwardingAddress"], divert["filter"]) == ("twice", "short", "kind = 'a'")
        chores, jobs = told.queue("chores"), told.queue("jobs")
        told_of = ("address", "maxConsumers", "ringSize", "filter", "enabled", "life")
        assert {name: chores[name] for name in told_of} == {
            "address": "tasks", "maxConsumers": 7, "ringSize": 3, "filter": "kind = 'a'", "enabled": False,
            "life": "created",
        }  # fmt: skip
        assert (jobs["maxConsumers"], jobs["paused"], jobs["persistedPause"]) == (3, True, False)
        assert told.queue("orders")["ringSize"] == 4
        assert told.queue("odd / name")["life"] == "declared"
        assert told.ask("GET", "/api/queues/short")[0] == 404
        addresses = {row["name"]: row for row in told.ask("GET", "/api/addresses")[1]["data"]}
        assert sorted(addresses) == ["jobs", "news", "odd", "orders", "tasks"]
        news = addresses["news"]
        assert (news["routingTypes"], news["paused"]) == ("ANYCAST,MULTICAST", True)
        assert (addresses["jobs"]["paused"], addresses["jobs"]["blocked"]) == (True, False)
        assert told.broker.stop() == 0


def test_files_are_compacted(tmp_path: Path) -> None:
    """One message in eight stays, in few files instead of many; and they are there after a crash."""
    count = 400
    small = "<journal-file-size>100K</journal-file-size><journal-compact-min-files>0</journal-compact-min-files>"
    with operated(stored(tmp_path, core=small), tmp_path) as told:
        with told.client() as client:
            for number in range(count):
                headers = {"destination": "/queue/orders" if number % 8 else "/queue/jobs", "persistent": "true"}
                write = client.ask if number % 10 == 0 else client.send  # a file gets whole batches
                write("SEND", headers, b"x" * 2000)
            client.nothing_waits()
        told.asked("POST", "/api/queues/orders/purge")
        before = told.ask("GET", "/api/journal")[1]
        assert before["files"] > 4
        status, answer = told.ask("POST", "/api/journal/compact")
        assert (status, answer["filesBefore"]) == (200, before["files"])
        assert answer["filesAfter"] <= 3 < answer["filesBefore"]
        assert answer["bytesAfter"] < answer["bytesBefore"] / 2
        assert told.queue("jobs")["messageCount"] == count // 8
        told.broker.kill()
    with operated(stored(tmp_path, core=small), tmp_path) as told:
        assert told.queue("jobs")["messageCount"] == count // 8
        assert told.queue("orders")["messageCount"] == 0
        assert told.broker.stop() == 0
