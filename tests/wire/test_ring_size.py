"""Ring sizes that are refused, in the file and at run time."""

from __future__ import annotations

import pytest

from artemis_py.errors import BrokerError, ConfigError, NotFoundError
from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire


@pytest.mark.parametrize("size", ["-2", "three", "1.5", ""])
def test_ring_24_sizes_that_mean_nothing(size: str) -> None:
    """R-22: -1 or 0 and more."""
    queue = f'<queue name="r" ring-size="{size}"/>'
    with pytest.raises(ConfigError, match="ring-size"):
        configuration(f'<addresses><address name="r"><anycast>{queue}</anycast></address></addresses>')


def test_ring_24_defaults_that_mean_nothing() -> None:
    setting = '<address-setting match="#"><default-ring-size>-2</default-ring-size></address-setting>'
    with pytest.raises(ConfigError, match="ring-size"):
        configuration(f"<address-settings>{setting}</address-settings>")


def test_ring_17_refused_at_run_time() -> None:
    queue = '<queue name="r" ring-size="3"/>'
    world = InProcessBroker(
        configuration(f'<addresses><address name="r"><anycast>{queue}</anycast></address></addresses>')
    )
    with pytest.raises(BrokerError, match="ring-size"):
        world.broker.queue_operations.set_ring_size("r", -2)
    with pytest.raises(NotFoundError, match="nowhere"):
        world.broker.queue_operations.set_ring_size("nowhere", 3)
    client = world.client("p")
    client.send(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0" + b"SEND\ndestination:r\n\nx\0" * 5)
    assert world.queue("r").message_count == 3
