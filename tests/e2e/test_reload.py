"""The configuration of a running broker is edited, in all the ways in which files are edited; from outside."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.edited import text_of
from tests.e2e.events.event_stream import EventStream
from tests.e2e.management.told import Told, operated
from tests.kit.client import connected
from tests.kit.forks import run_text
from tests.kit.process import STOMP, anycast, started

pytestmark = pytest.mark.e2e

_UNWATCHED: Final = "<configuration-file-refresh-period>-1</configuration-file-refresh-period>"
_FORCE: Final = (
    '<address-setting match="#"><config-delete-addresses>FORCE</config-delete-addresses>'
    "<config-delete-queues>FORCE</config-delete-queues><config-delete-diverts>FORCE</config-delete-diverts>"
    "{}</address-setting>"
)


MAX_1: Final = text_of(anycast("q", 'max-consumers="1"'))
MAX_2: Final = text_of(anycast("q", 'max-consumers="2"'))
MAX_3: Final = text_of(anycast("q", 'max-consumers="3"'))

# ---- how files are edited --------------------------------------------------------------------------


def test_edits_are_seen_however_they_are_made(tmp_path: Path) -> None:
    with operated(MAX_1, tmp_path) as it:
        assert it.state["watched"] is True
        it.write(MAX_2)
        it.await_attribute("q", "maxConsumers", 2)
        it.file.write_text(MAX_3, "utf-8")  # in place
        it.await_attribute("q", "maxConsumers", 3)
        it.file.rename(it.file.with_suffix(".bak"))  # as vim with a backup
        it.file.write_text(MAX_1, "utf-8")
        it.await_attribute("q", "maxConsumers", 1)


def test_a_file_that_is_written_slowly_is_no_broken_one(tmp_path: Path) -> None:
    with operated(MAX_1, tmp_path) as it:
        half = len(MAX_2) // 2
        with it.file.open("w", encoding="utf-8") as file:
            file.write(MAX_2[:half])
            file.flush()
            os.fsync(file.fileno())
            file.write(MAX_2[half:])
        it.await_attribute("q", "maxConsumers", 2)
        assert it.state["reloads"]["refused"] == 0


def test_a_config_map_of_kubernetes(tmp_path: Path) -> None:
    """The kubelet makes a new folder and exchanges one link; the file itself is a link that stays as it is."""
    mount = tmp_path / "mount"
    for name, text in (("..one", MAX_1), ("..two", MAX_2)):
        (mount / name).mkdir(parents=True)
        (mount / name / "broker.xml").write_text(text, "utf-8")
    (mount / "..data").symlink_to("..one")
    (mount / "broker.xml").symlink_to("..data/broker.xml")
    with started(mount / "broker.xml", log=tmp_path / "broker.log", folder=tmp_path) as broker:
        it = Told(broker)
        (mount / "..data_tmp").symlink_to("..two")
        (mount / "..data_tmp").rename(mount / "..data")
        it.await_attribute("q", "maxConsumers", 2)
        assert it.state["file"] == str(mount / "broker.xml")
        assert broker.stop() == 0, broker.said


def test_included_files_and_properties_count(tmp_path: Path) -> None:
    part = tmp_path / "addresses.xml"
    begin, end = '<addresses xmlns="urn:activemq:core">', "</addresses>"
    part.write_text(begin + anycast("q", 'max-consumers="1"') + end, "utf-8")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="addresses.xml"/>'
    text = text_of().replace(f"<addresses>\n{anycast('other')}\n    </addresses>", include)
    with operated(text, tmp_path) as it:
        part.write_text(begin + anycast("q", 'max-consumers="2"') + end, "utf-8")
        it.await_attribute("q", "maxConsumers", 2)
        (tmp_path / "broker.properties").write_text("addressSettings.#.maxSizeMessages=7\n", "utf-8")
        it.broker.eventually("a reload", lambda: it.state["reloads"]["applied"], lambda seen: seen == 2)


def test_sighup(tmp_path: Path) -> None:
    with operated(text_of(anycast("q"), core=_UNWATCHED), tmp_path) as it:
        assert it.state["watched"] is False
        it.write(text_of(anycast("q", 'max-consumers="2"'), core=_UNWATCHED))
        it.broker.process.send_signal(signal.SIGHUP)
        it.await_attribute("q", "maxConsumers", 2)


def test_a_hundred_fast_edits_end_with_the_last_one(tmp_path: Path) -> None:
    with operated(MAX_1, tmp_path) as it:
        for number in range(100):
            it.write(text_of(anycast("q", f'max-consumers="{number + 2}"')))
        it.await_attribute("q", "maxConsumers", 101)
        it.broker.eventually("quiet", lambda: it.reload()["result"], lambda seen: seen == "unchanged")
        assert it.state["valid"] is True
        assert it.state["reloads"]["refused"] == 0


# ---- broken edits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<configuration", "not well-formed XML"),
        (MAX_2.replace('max-consumers="2"', 'max-consumers="two"'), "max-consumers"),
        (MAX_2.replace("<name>", "<nome>").replace("</name>", "</nome>"), "nome"),
        (MAX_2.replace("</acceptors>", '<acceptor name="x">tcp://127.0.0.1:{used}</acceptor></acceptors>'), "in use"),
    ],
)
def test_a_broken_edit_changes_nothing_and_is_told(tmp_path: Path, text: str, said: str) -> None:
    with operated(MAX_1, tmp_path) as it, it.client() as client:
        it.write(text.replace("{used}", str(it.broker.port)))
        it.broker.await_said(" CFG-1002 ")
        assert it.queue("q")["maxConsumers"] == 1
        state = it.state
        assert state["valid"] is False
        assert said in state["problems"][0]
        status, answer = it.ask("POST", "/api/broker/reload")
        assert status == 409
        assert said in answer["error"]
        status, health = it.ask("GET", "/health/ready")
        assert (status, health["status"]) == (200, "UP")
        assert said in health["warnings"][0]
        assert it.broker.metric("artemis_config_last_reload_successful") == 0
        refused = it.broker.metric("artemis_config_reloads_total", result="refused")
        assert refused == it.state["reloads"]["refused"] >= 2  # a new file and its name may be two events
        client.ask("SEND", {"destination": "/queue/q"}, b"x")  # connections stay
        it.write(MAX_2)
        it.await_attribute("q", "maxConsumers", 2)
        assert it.ask("GET", "/health/ready") == it.ask("GET", "/health") == (200, {"status": "UP"})
        assert it.broker.metric("artemis_config_last_reload_successful") == 1


# ---- what changes ----------------------------------------------------------------------------------


def test_queues_and_diverts_come_and_change(tmp_path: Path) -> None:
    divert = '<divert name="d"><address>q</address><forwarding-address>copies</forwarding-address>{}</divert>'
    with operated(text_of(anycast("q")), tmp_path) as it:
        it.write(text_of(anycast("q"), anycast("copies"), diverts=divert.format("")))
        assert it.reload()["result"] in ("applied", "unchanged")
        it.send("/queue/q")
        assert (it.queue("q")["messageCount"], it.queue("copies")["messageCount"]) == (1, 1)
        it.write(text_of(anycast("q"), anycast("copies"), diverts=divert.format("<exclusive>true</exclusive>")))
        it.reload()
        it.send("/queue/q")
        assert (it.queue("q")["messageCount"], it.queue("copies")["messageCount"]) == (1, 2)
        it.write(text_of(anycast("q"), anycast("copies")))  # OFF: the divert stays
        it.reload()
        it.send("/queue/q")
        assert it.queue("copies")["messageCount"] == 3
        it.write(text_of(anycast("q"), anycast("copies"), settings=_FORCE.format("")))
        it.reload()
        it.send("/queue/q")
        assert (it.queue("q")["messageCount"], it.queue("copies")["messageCount"]) == (2, 3)


def test_what_an_operator_did_to_a_declared_divert_is_told_before_it_is_undone(tmp_path: Path) -> None:
    divert = '<divert name="d"><address>q</address><forwarding-address>copies</forwarding-address></divert>'
    with operated(text_of(anycast("q"), anycast("copies"), diverts=divert), tmp_path) as it:
        assert it.command("divert", "update", "d", "--exclusive").returncode == 0
        (change,) = it.ask("GET", "/api/broker/changes")[1]["changes"]
        assert (change["setting"], change["old"], change["new"]) == (
            "exclusive", "true", "false",
        )  # fmt: skip
        assert change["note"] == "an operator changed it while the broker ran, and the file counts again"
        answer = it.ask("POST", "/api/broker/reload")[1]
        assert (answer["result"], answer["changeCount"]) == ("applied", 1)
        assert it.command("divert", "destroy", "d", "--yes").returncode == 0
        (change,) = it.ask("GET", "/api/broker/changes")[1]["changes"]
        assert (change["part"], change["name"], change["action"]) == ("divert", "d", "added")
        assert change["note"] == "it was deleted while the broker ran, and comes back"
        answer = it.ask("POST", "/api/broker/reload")[1]
        assert (answer["result"], answer["changeCount"]) == ("applied", 1)
        assert it.ask("POST", "/api/broker/reload")[1]["result"] == "unchanged"


def test_limits_change_for_what_is_there(tmp_path: Path) -> None:
    """A ring that is made smaller drops nothing, and stops growing; a smaller address is full at once."""
    with operated(text_of(anycast("q")), tmp_path) as it:
        it.send("/queue/q", "x" * 10)
        it.write(text_of(anycast("q", 'ring-size="4"')))
        it.reload()
        assert it.queue("q")["messageCount"] == 10
        it.send("/queue/q", "xxx")
        assert it.queue("q")["messageCount"] == 10
        full = (
            '<address-setting match="q"><max-size-messages>5</max-size-messages>'
            "<address-full-policy>FAIL</address-full-policy></address-setting>"
        )
        it.write(text_of(anycast("q"), settings=full))
        it.reload()
        with it.client() as client:
            client.send("SEND", {"destination": "/queue/q", "receipt": "1"}, b"x")
            assert "full" in client.expect("ERROR").text


def test_an_operator_and_the_file(tmp_path: Path) -> None:
    """A pause stays. A queue that an operator deleted comes back; one that a client made is left alone."""
    with operated(text_of(anycast("q"), anycast("p"), settings=_FORCE.format("")), tmp_path) as it:
        it.ask("POST", "/api/queues/q/pause")
        it.ask("DELETE", "/api/queues/p")
        it.send("/queue/of.a.client")
        it.reload()
        assert it.queue("q")["paused"] is True
        assert it.broker.rows("queues").keys() == {"q", "p", "of.a.client"}


def test_an_update_of_a_declared_queue_lasts_until_the_file_is_touched(tmp_path: Path) -> None:
    """All but its ring-size, and whether it is paused."""
    shown = ("maxConsumers", "filter", "enabled", "ringSize", "paused")
    changes = {"max-consumers": 7, "filter-string": "a = 1", "ring-size": 5, "enabled": False}
    with operated(MAX_1, tmp_path) as it:
        status, row = it.ask("PATCH", "/api/queues/q", json.dumps(changes).encode())
        assert status == 200, row
        it.ask("POST", "/api/queues/q/pause")
        row = it.queue("q")
        assert [row[name] for name in shown] == [7, "a = 1", False, 5, True]
        it.file.touch()
        it.await_attribute("q", "maxConsumers", 1)
        row = it.queue("q")
        assert [row[name] for name in shown] == [1, None, True, 5, True]
        assert it.state["reloads"]["unchanged"] == 1
        it.write(text_of(anycast("q", 'max-consumers="1" ring-size="3"')))
        it.await_attribute("q", "ringSize", 3)
        it.ask("PATCH", "/api/queues/q", b'{"max-consumers": 8}')
        it.write(text_of(anycast("q", 'max-consumers="2" ring-size="3"')))
        it.await_attribute("q", "maxConsumers", 2)
        assert (it.queue("q")["ringSize"], it.queue("q")["paused"]) == (3, True)


def test_acceptors_come_and_go(tmp_path: Path) -> None:
    """Connections of an acceptor that has not changed stay; those of one that has are closed with a reason."""
    with operated(text_of(anycast("q")), tmp_path) as it, it.client() as first:
        it.write(text_of(anycast("q"), acceptors={"two": STOMP}))
        it.reload()
        opened = re.compile(r" acceptor=two listening on \S+:(\d+) for ")
        port = opened.findall(it.broker.await_said(opened))[-1]
        with connected(int(port)) as second:
            it.write(text_of(anycast("q"), acceptors={"two": f"{STOMP};stompConsumerWindowSize=1"}))
            it.reload()
            assert "The acceptor of this connection has changed" in second.expect("ERROR").text
        it.write(text_of(anycast("q")))
        it.reload()
        first.ask("SEND", {"destination": "/queue/q"}, b"x")


# ---- deletions -------------------------------------------------------------------------------------


def test_without_force_nothing_goes(tmp_path: Path) -> None:
    with operated(text_of(anycast("q"), anycast("p")), tmp_path) as it:
        it.send("/queue/q", "xxx")
        it.write(text_of(anycast("p")))
        it.reload()
        assert it.queue("q")["messageCount"] == 3


@pytest.mark.parametrize("persistent", [False, True])
def test_force_deletes_with_consumers_and_with_pages(tmp_path: Path, persistent: bool) -> None:
    paging = "<max-size-messages>10</max-size-messages><page-size-bytes>16K</page-size-bytes>"
    settings = _FORCE.format(paging)
    before = text_of(anycast("q"), anycast("p"), settings=settings, core=_UNWATCHED, persistent=persistent)
    after = text_of(anycast("p"), settings=settings, core=_UNWATCHED, persistent=persistent)
    with operated(before, tmp_path) as it:
        with it.client() as sender:
            for _ in range(500):
                sender.send("SEND", {"destination": "/queue/q", "persistent": "true"}, b"x" * 100)
            sender.ask("SEND", {"destination": "/queue/p", "persistent": "true"}, b"x")
        it.broker.await_count("q", 500)
        consumer = it.client()
        consumer.subscribe("/queue/q", ack="client")
        it.write(after)
        compared = it.command("diff", "--running")
        answer = it.reload()
        assert it.broker.rows("queues").keys() == {"p"}
        assert (answer["result"], answer["removedMessages"]) == ("applied", 500)
        assert compared.returncode == 1, compared.stderr
        assert "queue q (500 messages, 1 consumer): deleted" in compared.stdout
        errors = [one.text for one in consumer.read_to_end() if one.command == "ERROR"]
        assert "broker.xml does not declare it any more" in errors[0]
        assert it.queue("p")["messageCount"] == 1
        if persistent:
            pages = tmp_path / "data" / "paging"
            it.broker.eventually("no pages", lambda: list(pages.glob("*.page")), lambda left: left == [])


def test_a_reload_by_command_asks_when_messages_are_affected(tmp_path: Path) -> None:
    settings = _FORCE.format("")
    before = text_of(anycast("q"), anycast("p"), settings=settings, core=_UNWATCHED)
    with operated(before, tmp_path) as it:
        with it.client() as client:
            client.ask("SEND", {"destination": "/queue/q"}, b"x")
            client.subscribe("/queue/p")
            it.write(text_of(anycast("p", 'max-consumers="3"'), anycast("q"), settings=settings, core=_UNWATCHED))
            assert it.command("broker", "reload").returncode == 0, "nothing is lost, so nobody is asked"
            it.write(text_of(anycast("p"), settings=settings, core=_UNWATCHED))
            asked = it.command("broker", "reload")
            assert (asked.returncode, asked.stdout) == (1, "")
            assert "this affects queue q with 1 message and 0 consumers (deleted, with its messages" in asked.stderr
            assert "nobody is here to ask: add --yes" in asked.stderr
            assert it.broker.rows("queues").keys() >= {"q", "p"}
            assert it.command("broker", "reload", "--yes").returncode == 0
            assert "q" not in it.broker.rows("queues")
        shown = it.command("broker", "configuration").stdout
        dates = [line.split()[1] for line in shown.splitlines() if line.startswith(("readAt", "triedAt"))]
        assert [len(date) for date in dates] == [10, 10], "a date as people write it"
        raw = json.loads(it.command("broker", "configuration", "--json").stdout)["readAt"]
        assert raw > 10**12


def test_killed_while_a_reload_is_under_way(tmp_path: Path) -> None:
    """What the file says is in force after the start, and no message is lost that FORCE does not name."""
    many = [anycast(f"m.{number}") for number in range(300)]
    before = text_of(*many, anycast("kept"), settings=_FORCE.format(""), persistent=True)
    after = text_of(anycast("kept", 'max-consumers="7"'), anycast("new"), settings=_FORCE.format(""), persistent=True)
    with operated(before, tmp_path) as it:
        with it.client() as sender:
            for number in range(300):
                sender.send("SEND", {"destination": f"/queue/m.{number}", "persistent": "true"}, b"x")
            for _ in range(20):
                sender.ask("SEND", {"destination": "/queue/kept", "persistent": "true"}, b"x")
        it.write(after)
        it.broker.process.send_signal(signal.SIGHUP)
        it.broker.eventually("some are deleted", lambda: it.broker.said.count("QUE-1002"), lambda count: count > 0)
        it.broker.kill()
    with operated(after, tmp_path) as it:
        it.broker.eventually(
            "the rest is deleted", lambda: it.broker.rows("queues").keys(), lambda names: names == {"kept", "new"}
        )
        assert it.queue("kept")["messageCount"] == 20
        assert it.queue("kept")["maxConsumers"] == 7


# ---- the command -----------------------------------------------------------------------------------


def test_diff_of_two_files(tmp_path: Path) -> None:
    one, two, broken = (tmp_path / name for name in ("one.xml", "two.xml", "broken.xml"))
    one.write_text(MAX_1, "utf-8")
    two.write_text(MAX_2.replace('"2"/>', '"2"><durable>false</durable></queue>'), "utf-8")
    broken.write_text("<configuration", "utf-8")
    run = ["diff", str(one)]
    same = run_text([*run, str(one)])
    assert (same.returncode, same.stdout) == (0, f"{one}: nothing would change\n")
    other = run_text([*run, str(two)])
    assert other.returncode == 1
    assert "max-consumers 1 → 2" in other.stdout
    assert "needs a restart:" in other.stdout
    as_json = run_text([*run, str(two), "--json"])
    rows = json.loads(as_json.stdout)["changes"]
    assert {(row["setting"], row["effect"]) for row in rows} == {("durable", "restart"), ("max-consumers", "now")}
    wrong = run_text([*run, str(broken)])
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "not well-formed XML" in wrong.stderr
    alone = run_text(run)
    assert (alone.returncode, f"name the configuration to compare {one} with" in alone.stderr) == (2, True)
    both = run_text([*run, "--running"])
    assert (both.returncode, f"without --running: artemis-py diff OLD {one}" in both.stderr) == (2, True)


def test_listeners_are_told(tmp_path: Path) -> None:
    with operated(MAX_1, tmp_path) as it, EventStream(it.broker) as events, it.client() as client:
        client.subscribe("activemq.notifications", selector="_AMQ_NotifType LIKE 'CONFIGURATION%'")
        it.write(MAX_2)
        read = events.notification("CONFIGURATION_RELOADED")
        assert (read["file"], read["result"], read["changes"], read["failures"]) == (str(it.file), "applied", 1, 0)
        it.write("<configuration>\n</wrong>")
        refused = events.notification("CONFIGURATION_REFUSED")
        assert (refused["file"], refused["problems"]) == (str(it.file), 1)
        assert f"{it.file}:2" in refused["problem"]
        headers = [client.message() for _ in range(2)]
        assert [one.header("_AMQ_NotifType") for one in headers] == ["CONFIGURATION_RELOADED", "CONFIGURATION_REFUSED"]
        assert (headers[1].header("problem") or "").replace("\\c", ":") == refused["problem"]
