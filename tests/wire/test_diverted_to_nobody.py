"""What an exclusive divert takes, and no queue gets, counts as unrouted where it was sent."""

from __future__ import annotations

import pytest

from tests.kit.in_process import InProcessBroker, configuration


def _divert(name: str, address: str, *targets: str, exclusive: bool = True) -> str:
    forwarding = f"<forwarding-address>{', '.join(targets)}</forwarding-address>"
    return (
        f'<divert name="{name}"><address>{address}</address>{forwarding}'
        f"<exclusive>{str(exclusive).lower()}</exclusive></divert>"
    )


CONFIGURATION = f"""<diverts>
{_divert("d1", "to.nobody", "nobody")}{_divert("d2", "to.jobs", "jobs")}
{_divert("d3", "to.both", "nobody", "jobs")}{_divert("d4", "to.first", "to.nobody")}
{_divert("d5", "to.second", "to.jobs")}{_divert("d6", "copied", "nobody", exclusive=False)}
{_divert("d7", "to.forbidden", "forbidden")}
</diverts>
<addresses><address name="jobs"><anycast><queue name="jobs"/></anycast></address>
<address name="copied"><anycast><queue name="copied"/></anycast></address></addresses>
<address-settings><address-setting match="forbidden"><auto-create-addresses>false</auto-create-addresses>
</address-setting></address-settings>"""


@pytest.mark.parametrize("more", [(), ("receipt-routing:true",)], ids=["unasked", "asked"])
@pytest.mark.parametrize("transaction", [b"", b"transaction:t\n"], ids=["alone", "committed"])
@pytest.mark.parametrize(
    ("name", "is_there"),
    [
        ("to.nobody", False), ("to.jobs", True), ("to.both", True), ("to.first", False), ("to.second", True),
        ("copied", True), ("to.forbidden", False),
    ],
)  # fmt: skip
def test_it_counts_where_it_was_sent(name: str, is_there: bool, transaction: bytes, more: tuple[str, ...]) -> None:
    world = InProcessBroker(configuration(CONFIGURATION))
    client = world.client("a").greet(*more)
    if transaction:
        client.send(b"BEGIN\n%b\n\0" % transaction)
    client.send(b"SEND\ndestination:%b\n%b\nx\0" % (name.encode(), transaction) * 3)
    if transaction:
        client.send(b"COMMIT\n%b\n\0" % transaction)
    address = world.broker.addresses[name]
    assert address.routed_message_count == (3 if is_there else 0)
    assert address.unrouted_message_count == (0 if is_there else 3)
    assert not world.broker.host.outcomes


@pytest.mark.parametrize("name", ["to.nobody", "to.first"])
def test_the_receipt_tells_where_the_divert_leads(name: str) -> None:
    world = InProcessBroker(configuration(CONFIGURATION))
    client = world.client("a").greet("receipt-routing:true")
    client.send(b"SEND\ndestination:/queue/%b\nreceipt:r\n\nx\0" % name.encode())
    (told,) = client.collect()
    assert [told.header(header) for header in ("queues", "reason", "address", "diverted-to")] == [
        "0", "diverted", name, "nobody",
    ]  # fmt: skip
