"""docs/tracing.md: its examples, and ``artemis-py spans`` against a broker with retention and a collector of spans."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.foreign_clients import PROGRAMS, node_with
from tests.e2e.span_collector import collecting
from tests.kit.client import StompSocket, connected
from tests.kit.forks import program, run_text
from tests.kit.packages import Absent
from tests.kit.ports import free_port
from tests.kit.process import (
    DAYS,
    HTTP,
    STOMP,
    BrokerProcess,
    eventually,
    for_the_module,
    storing,
)

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = dict(
    re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", (ROOT / "docs" / "tracing.md").read_text(), re.DOTALL)
)

pytestmark = pytest.mark.e2e


DLQ = '<address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>'
DEAD = """<address-setting match="#"><max-delivery-attempts>2</max-delivery-attempts>
<dead-letter-address>DLQ</dead-letter-address></address-setting>"""
retaining = partial(storing, settings=DEAD, addresses=DLQ, kept=DAYS)
broker = for_the_module(retaining)


def traceparent(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.timeout(180)
def test_an_example_and_the_broker_make_one_trace(broker: BrokerProcess, tmp_path: Path, name: str) -> None:
    with collecting() as collector:
        text = EXAMPLES[name].replace("http://127.0.0.1:4318/v1/traces", collector.url)
        file = tmp_path / name
        file.write_text(text.replace("61613", str(broker.port)))
        command = [sys.executable, str(file)]
        if not name.endswith(".py"):
            try:
                node, modules = node_with(PROGRAMS / "tracing", "@opentelemetry/sdk-trace-node", "@stomp/tcp-wrapper")
            except Absent as absent:
                pytest.skip(f"no client for {name}: {absent}")
            (tmp_path / "node_modules").symlink_to(modules)
            command = [node, str(file)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, env=environment
        )
        assert (done.stdout.split(), done.returncode) == (["received", "hello"], 0), done.stderr
        broker.await_count("greetings", 0)
        sent = run_text(["spans", "--url", broker.url, "--otlp", collector.url], timeout=120)
        assert sent.returncode == 0, sent.stderr
        (sender,) = collector.named("send /queue/greetings")
        ours = {span.name: span for span in collector.spans if span.trace_id == sender.trace_id}
        assert set(ours) == {sender.name, "process /queue/greetings", "queue greetings", "deliver greetings"}
        assert ours["process /queue/greetings"].parent_span_id == sender.span_id
        assert ours["queue greetings"].parent_span_id == sender.span_id
        assert ours["deliver greetings"].parent_span_id == ours["queue greetings"].span_id
        assert {"shop", "e2e"} <= collector.services
        assert ours["queue greetings"].start_time_unix_nano <= ours["deliver greetings"].start_time_unix_nano


def test_a_dead_letter_has_a_span_that_links_to_its_original(broker: BrokerProcess) -> None:
    parent = traceparent(77)
    with StompSocket(broker.port) as client, collecting() as collector:
        client.connect()
        client.ask("SEND", {"destination": "/queue/bad", "persistent": "true", "traceparent": parent}, b"x")
        client.subscribe("/queue/bad", "1")
        for _ in range(2):
            message = client.expect("MESSAGE")
            assert message.header("traceparent") == parent
            client.ask("NACK", {"id": message.header("ack")})
        client.subscribe("/queue/DLQ", "2")
        letter = client.expect("MESSAGE")
        assert letter.header("traceparent") == parent
        client.ask("ACK", {"id": letter.header("ack")})
        done = run_text(["spans", "--url", broker.url, "--otlp", collector.url], timeout=120)
        assert done.returncode == 0, done.stderr
        (dead,) = collector.named("queue bad")
        (copy,) = collector.named("queue DLQ")
        assert [(link.trace_id, link.span_id) for link in copy.links] == [(dead.trace_id, dead.span_id)]
        assert copy.parent_span_id == dead.parent_span_id == (77).to_bytes(8, "big")
        assert (dead.status.code, copy.status.code) == (2, 0)
        assert [event.name for event in dead.events] == ["attempted", "attempted"]
        deliveries = collector.named("deliver bad")
        assert [span.status.message for span in deliveries] == ["nacked", "nacked"]
        assert {span.parent_span_id for span in deliveries} == {dead.span_id}


def test_directories_tell_the_same_as_the_broker(broker: BrokerProcess, tmp_path: Path) -> None:
    with connected(broker.port) as client:
        client.ask("SEND", {"destination": "/queue/same", "persistent": "true", "traceparent": traceparent(5)}, b"x")
        client.subscribe("/queue/same", "1")
        client.ask("ACK", {"id": client.expect("MESSAGE").header("ack")})
        over_http = run_text(["spans", "--url", broker.url, "--json"], timeout=120)
        folder = broker.log.parent
        read = run_text(["spans", "--journal", str(folder / "journal"), str(folder / "kept"), "--json"], timeout=120)
        assert over_http.stdout == read.stdout
        assert over_http.stdout.count("queue same") == 1
        late = run_text(["spans", "--url", broker.url, "--json", "--from", "2100-01-01"], timeout=120)
        assert late.stdout == ""


follow = partial(program, "spans", "--follow", "--cursor", "traces", stderr=subprocess.STDOUT)


def test_a_killed_exporter_goes_on_and_no_span_is_missing(tmp_path: Path) -> None:
    """Also while the collector is out of order, and while messages wait in a queue over the kill."""
    log = tmp_path / "spans.log"
    with (
        retaining(tmp_path) as broker,
        collecting() as collector,
        StompSocket(broker.port) as client,
    ):
        client.connect()

        def send(numbers: range, queue: str) -> None:
            for number in numbers:
                told = {"persistent": "true", "traceparent": traceparent(number)}
                client.send("SEND", {"destination": f"/queue/{queue}", **told}, b"x")

        def known(queue: str) -> set[int]:
            return {int.from_bytes(span.trace_id, "big") for span in collector.named(f"queue {queue}")}

        send(range(1, 11), "waiting")
        client.subscribe("/queue/work", "1", "auto")
        with log.open("ab") as output, follow("--url", broker.url, "--otlp", collector.url, stdout=output) as process:
            send(range(100, 400), "work")
            eventually("some spans", lambda: len(known("work")), lambda count: count > 0)
            collector.status = 503
            send(range(400, 700), "work")
            eventually("a refused request", lambda: collector.refused, lambda count: count > 0)
            process.send_signal(signal.SIGKILL)
            process.wait()
        send(range(700, 1000), "work")
        collector.status = 200
        with log.open("ab") as output, follow("--url", broker.url, "--otlp", collector.url, stdout=output) as process:
            client.subscribe("/queue/waiting", "2", "auto")
            eventually("all of work", lambda: known("work"), lambda seen: seen == set(range(100, 1000)))
            eventually("all of waiting", lambda: known("waiting"), lambda seen: seen == set(range(1, 11)))
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 0, log.read_text()
        before = {span.span_id for span in collector.spans}
        with log.open("ab") as output, follow("--url", broker.url, "--otlp", collector.url, stdout=output) as process:
            send(range(2000, 2001), "work")
            eventually("one more", lambda: 2000 in known("work"), bool)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
        # the queue's span and the delivery's; what is sent again is the same
        assert len({span.span_id for span in collector.spans} - before) == 2
        said = log.read_text()
        assert "Traceback" not in said
        assert "0 messages still in queues" in said


def test_a_broker_and_a_collector_that_are_away_are_waited_for(tmp_path: Path) -> None:
    log, port = tmp_path / "spans.log", free_port()
    acceptors = {"stomp": STOMP, "http": HTTP.replace(":0", f":{port}")}
    with collecting() as collector:
        with retaining(tmp_path, acceptors=acceptors) as broker, connected(broker.port) as client:
            told = {"destination": "/queue/a", "persistent": "true", "traceparent": traceparent(9)}
            client.ask("SEND", told, b"x")
        url = f"http://127.0.0.1:{port}"
        with log.open("ab") as output, follow("--url", url, "--otlp", collector.url, stdout=output):
            collector.status = 503
            eventually("it waits", log.read_text, lambda said: "did not answer" in said)
            with retaining(tmp_path, acceptors=acceptors) as broker, StompSocket(broker.port) as client:
                client.connect()
                client.subscribe("/queue/a", "1", "auto")
                eventually("it waits for the collector", log.read_text, lambda said: "does not take spans" in said)
                collector.status = 200
                eventually("the span", lambda: collector.named("queue a"), bool)
                eventually("it is back", log.read_text, lambda said: "the collector is back" in said)
        assert log.read_text().count("waiting: the broker") == 1


def test_mistakes_are_told(broker: BrokerProcess, tmp_path: Path) -> None:
    for arguments, said in (
        (("--url", broker.url, "--journal", str(tmp_path)), "--journal DIR"),
        (("--journal", str(tmp_path)), "no journal files"),
        (("--journal", str(tmp_path), "--follow"), "do not go with --journal"),
        (("--url", broker.url, "--otlp", "127.0.0.1:4318"), "/v1/traces"),
        (("--url", broker.url, "--cursor", "a b"), "valid cursor name"),
    ):
        done = run_text(["spans", *arguments], timeout=120)
        assert done.returncode != 0, arguments
        assert said in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
