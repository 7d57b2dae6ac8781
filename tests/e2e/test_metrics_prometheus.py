"""A real broker, a real Prometheus that scrapes it every second, a client, and what Prometheus then knows."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.kit.client import connected
from tests.kit.process import BrokerProcess, configuration, for_each_test, running
from tests.kit.prometheus_server import prometheus_with
from tests.kit.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CORE = """\
    <global-max-size>10MiB</global-max-size>
    <address-queue-scan-period>100</address-queue-scan-period>
"""
ADDRESSES = """\
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="latest"><anycast><queue name="latest" ring-size="2"/></anycast></address>
      <address name="secret"><anycast><queue name="secret"/></anycast></address>
"""
SETTINGS = '<address-setting match="secret"><enable-metrics>false</enable-metrics></address-setting>'
PROMETHEUS = """\
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: artemis
    static_configs:
      - targets: ["127.0.0.1:{http_port}"]
"""


broker = for_each_test(partial(running, configuration(core=CORE, addresses=ADDRESSES, settings=SETTINGS)))


def test_prometheus_knows_what_the_broker_holds(broker: BrokerProcess, prometheus: str, tmp_path: Path) -> None:
    """It scrapes the broker every second."""
    with prometheus_with(prometheus, PROMETHEUS.format(http_port=broker.ports["http"]), tmp_path) as prometheus_server:

        def ask(expression: str) -> dict[str, float]:
            """The value by queue, or by "" for what belongs to no queue."""
            samples = prometheus_server.query(expression)
            return {sample["metric"].get("queue", ""): float(sample["value"][1]) for sample in samples}

        def expect(expression: str, expected: dict[str, float]) -> None:
            prometheus_server.eventually(expression, lambda: ask(expression), expected)

        expect('up{job="artemis"}', {"": 1})
        expect("artemis_message_count", {"orders": 0, "latest": 0})
        client = connected(broker.port)
        client.publish("/queue/orders", range(3))
        client.publish("/queue/latest", range(5))
        client.publish("/queue/auto", range(1))
        client.subscribe("/queue/orders", consumer_window_size=0)
        message = client.message()
        expect('artemis_message_count{broker="e2e"}', {"orders": 3, "latest": 2, "auto": 1})
        expect("artemis_delivering_message_count", {"orders": 1, "latest": 0, "auto": 0})
        expect("artemis_messages_added", {"orders": 3, "latest": 5, "auto": 1})
        expect("artemis_messages_replaced", {"orders": 0, "latest": 3, "auto": 0})
        expect('artemis_consumer_count{queue="orders"}', {"orders": 1})
        expect("artemis_connection_count", {"": 1})
        expect('artemis_frames_total{command="SEND",direction="in"}', {"": 9})
        expect('artemis_routed_message_count{address="orders"}', {"": 3})
        expect("artemis_persistent_size > 0", ask("artemis_persistent_size"))
        expect("artemis_address_memory_usage > 0 and artemis_active == 1", ask("artemis_address_memory_usage"))
        expect("histogram_quantile(0.99, rate(artemis_turn_duration_seconds_bucket[30s])) > bool 0", {"": 1})

        client.acknowledge(message)
        expect("artemis_messages_acknowledged", {"orders": 1, "latest": 0, "auto": 0})
        expect('artemis_message_count{queue="orders"}', {"orders": 2})
        client.close()

        with connected(broker.port) as emptying:
            emptying.subscribe("/queue/auto", ack="auto")
            emptying.message()
        expect("artemis_message_count", {"orders": 2, "latest": 2})
        expect("artemis_connection_count", {"": 0})
        expect("artemis_total_connection_count", {"": 2})


def test_the_shipped_configuration_scrapes_the_shipped_broker(promtool: str) -> None:
    file = ROOT / "monitoring" / "prometheus.yml"
    done = subprocess.run([promtool, "check", "config", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    acceptor = re.search(
        r"tcp://[^<]*?:(?:\$\{\w+:)?(\d+)\}?\?[^<]*protocols=HTTP", (ROOT / "broker.xml").read_text("utf-8")
    )
    assert acceptor is not None
    assert f'targets: ["127.0.0.1:{acceptor[1]}"]' in file.read_text("utf-8")
