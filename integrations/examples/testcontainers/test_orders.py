"""An order through a broker in a container, with pytest, testcontainers and stomp.py."""

import json
import urllib.request

import pytest
import stomp
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy


@pytest.fixture(scope="session")
def broker():
    """A broker for all tests, which ends with them."""
    container = DockerContainer("artemis-py").with_exposed_ports(61613, 8161)
    container.with_env("BROKER_SECURITY", "false").waiting_for(HttpWaitStrategy(8161, "/health/ready"))
    with container:
        yield container


def test_an_order_is_kept(broker):
    """STOMP on one port, questions about queues on the other."""
    host, port = broker.get_container_host_ip(), int(broker.get_exposed_port(61613))
    connection = stomp.Connection12([(host, port)])
    connection.connect(wait=True)
    connection.send("/queue/orders", "two coffees", headers={"persistent": "true"})
    connection.disconnect(receipt="bye")
    url = f"http://{host}:{broker.get_exposed_port(8161)}/api/queues/orders"
    with urllib.request.urlopen(url) as answer:
        assert json.load(answer)["messageCount"] == 1
