"""A RECEIPT tells whoever asked for it which of its earlier messages gave way to this one."""

from __future__ import annotations

import pytest

from tests.kit.in_process import Client, InProcessBroker, configuration

QUEUES = """<addresses>
<address name="ring"><anycast><queue name="ring" ring-size="2"/></anycast></address>
<address name="last"><anycast><queue name="last" last-value-key="k"/></anycast></address>
<address name="both"><multicast><queue name="one" ring-size="1"/><queue name="all"/></multicast></address>
</addresses>"""


def told(client: Client, destination: str, count: int) -> list[str | None]:
    """What the RECEIPTs of messages tell that come all at once."""
    client.send(b"".join(b"SEND\ndestination:%s\nk:1\nreceipt:r\n\nx\0" % destination.encode() for _ in range(count)))
    frames = list(client.collect())
    client.collect().clear()
    assert [frame.command for frame in frames] == ["RECEIPT"] * count
    return [frame.header("replaced") for frame in frames]


@pytest.mark.parametrize(
    ("destination", "replaced"),
    [
        ("ring", [None, None, "1", "1", "1"]),
        ("last", [None, "1", "1", "1", "1"]),
        ("both", [None, "1", "1", "1", "1"]),
    ],
)
def test_what_gave_way_is_told(destination: str, replaced: list[str | None]) -> None:
    world = InProcessBroker(configuration(QUEUES))
    assert told(world.client("a").greet("receipt-routing:true"), destination, 5) == replaced
    assert told(world.client("b").greet("receipt-routing:true"), destination, 1) == [None], (
        "what others have sent is nothing to this one"
    )
