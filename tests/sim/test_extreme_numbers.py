"""No number that a configuration or a client may choose makes a step fail, or loses a message: it is refused by its
name, or it counts as the limit that is documented.
"""

from __future__ import annotations

import pytest

from artemis_py.config.settings import AddressSettings, BrokerConfig
from artemis_py.config.tables.acceptor import PARAMS
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.fields import BYTES, DOUBLE, HONOURED, INT, LONG, PERIOD, Setting, settings_of
from artemis_py.core.events import GIVEN_UP, SET_ASIDE
from artemis_py.errors import ConfigError
from artemis_py.storage.format.codec import Kept, decode_message, encode_message
from artemis_py.terminal_output import shown_time
from tests.kit.crash.failing_steps import World
from tests.kit.crash.prepared import message
from tests.kit.in_process import configuration

_WHOLE = ("-9223372036854775808", "-2147483648", "-2", "-1", "0", "1", "2147483647", "9223372036854775807")
_BROKEN = ("-1e308", "-2.5", "0", "1e-308", "1e15", "1e308")
_VALUES = {INT: _WHOLE, LONG: _WHOLE, BYTES: _WHOLE, PERIOD: _WHOLE, DOUBLE: _BROKEN}
HUGE = "9" * 18
"""The largest number that a header may have."""
_RUN = {"dead-letter-address": "dead", "expiry-address": "dead", "redelivery-delay": "50"}


def _check(world: World) -> None:
    counts, faults = world.life.broker.events.counts, world.life.stats.faults.counts
    assert not counts.get(SET_ASIDE, 0), "a queue was paused because its step failed"
    assert not counts.get(GIVEN_UP, 0), "a copy or a task was given up"
    assert not sum(faults.values()), faults
    assert world.life.failure is None
    projection = world.life.projection()
    for queue in world.life.broker.queues.values():
        contents = queue.contents
        there = {entry.message.id for entry in (*contents.order, *contents.scheduled.values())}
        entry = None if contents.pending is None else contents.pending.first()
        while contents.pending is not None and entry is not None:
            there.add(entry.message.id)
            entry = contents.pending.next_from(entry.sequence + 1)
        assert queue.message_count == len(there) + contents.paged.count, queue.name
        written = {item.identity[0] for item in projection.items(queue.id)}
        assert len(written) == contents.counters.durable_count, queue.name
        assert contents.paged.count or written <= there, queue.name


def _config(rows: dict[str, str], core: str = "", acceptor: str = "") -> BrokerConfig:
    settings = "".join(f"<{name}>{value}</{name}>" for name, value in {**_RUN, **rows}.items())
    return configuration(
        f"""{core}<addresses><address name="q"><anycast><queue name="q"/></anycast></address>
        <address name="dead"><anycast><queue name="dead"/></anycast></address></addresses>
        <address-settings><address-setting match="q">{settings}</address-setting>
        </address-settings>""",
        acceptor,
    )


def _numeric(table: type) -> list[Setting]:
    return [row for row in settings_of(table).values() if row.kind in _VALUES and row.treatment == HONOURED]


def _try(name: str, values: dict[str, str], core: str = "", acceptor: str = "") -> None:
    """Clients do everything to a queue in which a number counts, if it is not refused: failures, schedules, expiry,
    leases, a lost connection, a transaction.
    """
    refusal = ""
    try:
        config = _config(values, core, acceptor)
    except ConfigError as error:
        refusal = str(error)
    if refusal:
        assert name in refusal, f"refused without its name: {refusal}"
        return
    world = World(config)
    for headers in ((), ("priority:9",), ("JMSXGroupID:g",), (f"expires:{HUGE}",), ("expires:1",)):
        world.send("q", *headers)
    for headers in ((f"AMQ_SCHEDULED_TIME:{HUGE}",), (f"AMQ_SCHEDULED_DELAY:{HUGE}",), ("AMQ_SCHEDULED_DELAY:5",)):
        world.send("q", *headers)
    world.send("q", f"expires:{world.life.loop.clock_ms() + 100}", f"x-qpid-not-valid-before:{2**63 - 1}")
    world.write("consumer", "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client-individual")
    for _ in range(4):
        for frame in world.messages("consumer")[:2]:
            world.settle("consumer", frame, "NACK")
        world.advance(60)
    world.write("producer", "BEGIN", "transaction:t")
    world.write("producer", "SEND", "destination:/queue/q", "persistent:true", "transaction:t", body="in t")
    world.write("producer", "COMMIT", "transaction:t")
    world.lose("consumer")
    world.life.client().send(b"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:1000,1000\n\n\0")
    world.life.drain()
    world.advance(60_000)
    _check(world)


@pytest.mark.thirds
@pytest.mark.parametrize("row", _numeric(AddressSettings), ids=lambda row: row.name)
def test_a_number_of_an_address_setting(row: Setting) -> None:
    """The smallest, the largest and those around nothing: refused by name, or harmless."""
    for value in _VALUES[row.kind]:
        _try(row.name, {row.name: value})


@pytest.mark.thirds
@pytest.mark.parametrize("multiplier", ["1e308", "1000", "-2.5", "0"])
@pytest.mark.parametrize("longest", ["-1", "0", "9223372036854775807"])
@pytest.mark.parametrize("delay", ["1", "9223372036854775807"])
def test_a_redelivery_delay_that_grows_beyond_every_limit(delay: str, multiplier: str, longest: str) -> None:
    """Alone each of the numbers is harmless; what follows from them together is so, too."""
    rows = {
        "redelivery-delay": delay,
        "redelivery-delay-multiplier": multiplier,
        "max-redelivery-delay": longest,
        "redelivery-collision-avoidance-factor": "1",
        "max-delivery-attempts": "-1",
    }
    _try("redelivery", rows)


@pytest.mark.thirds
@pytest.mark.parametrize("row", _numeric(CoreSettings), ids=lambda row: row.name)
def test_a_number_of_the_broker(row: Setting) -> None:
    """The same for the settings below ``core``."""
    for value in _VALUES[row.kind]:
        _try(row.name, {}, f"<{row.name}>{value}</{row.name}>")


@pytest.mark.thirds
@pytest.mark.parametrize(
    "row", [row for row in PARAMS if row.kind in _VALUES and row.treatment == HONOURED], ids=lambda row: row.name
)
def test_a_number_of_an_acceptor(row: Setting) -> None:
    """The same for the parameters of an acceptor."""
    for value in _VALUES[row.kind]:
        _try(row.name, {}, acceptor=f"{row.name}={value}")


def test_attempts_beyond_what_a_record_has_room_for() -> None:
    """A message that has failed more often is written again when segments are compacted, and read with the largest
    number there is.
    """
    kept = Kept(message(1), 5, [7])
    kept.detail(7).attempts = 70_000
    assert decode_message(encode_message(kept)).detail(7).attempts == 65_535


_NUMBERS = ("0", "-1", "1", HUGE, f"-{HUGE}", "9223372036854775807", "9" * 19, "9" * 400, "9" * 5000, "1e308", "nan")
_SEND = (
    "priority", "expires", "AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_DELAY", "x-qpid-not-valid-before", "content-length",
)  # fmt: skip
_SUBSCRIBE = (
    "consumer-window-size", "activemq.prefetchSize", "consumer-priority", "x-priority", "max-backlog",
    "x-qpid-replay-period", "replay-period", "bookmark", "rate", "rate-max-gap",
)  # fmt: skip


@pytest.mark.parametrize("number", _NUMBERS, ids=lambda number: f"{number[:20]} of {len(number)}")
def test_a_number_of_a_client(number: str) -> None:
    """In a header it is refused with an ERROR that names the header, or counts as the nearest that there is; no step
    fails, and everything can be shown.
    """
    world = World(_config({}))
    for header in (*_SEND, *_SUBSCRIBE):
        if header in _SEND:
            world.write(header, "SEND", "destination:/queue/q", "persistent:true", f"{header}:{number}", body="x")
        else:
            world.write(header, "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client", f"{header}:{number}")
        errors = [frame for frame in world.clients[header].collect() if frame.command == "ERROR"]
        assert not errors or header in errors[0].text or header == "content-length", errors[0].text
        world.clients[header].drop()
    for beats in (f"{number},{number}", f"{number},0"):
        client = world.life.client()
        client.send(f"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:{beats}\n\n\0".encode())
        world.life.drain()
        client.drop()
    for identifier in (f"1-{number}", f"{number}-1", number):
        world.write(identifier, "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client")
        world.write(identifier, "ACK", f"id:{identifier}")
        world.clients[identifier].drop()
    world.advance(60_000)
    _check(world)
    for entry in world.life.broker.queues["q"].contents.scheduled.values():
        shown_time(world.life.broker.queues["q"].contents.scheduled_dates.of(entry.message.id))
