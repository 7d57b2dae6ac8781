"""Rows of AMPS (rows.py) about views: queues over other addresses, at the wire, over restarts, and with pages."""

from __future__ import annotations

import random

import pytest

from artemis_py.core.broker import Broker
from artemis_py.message import Message
from artemis_py.storage.format.records import MESSAGE
from tests.kit.bench import Bench
from tests.kit.crash.prepared import last_segment, records
from tests.kit.disk import SimDisk
from tests.kit.life import Life
from tests.kit.permitted import SecuredBroker, denied, setting
from tests.kit.views import DESK, EU, ONE, addresses, view

pytestmark = pytest.mark.wire


# ---- what comes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["/topic/", "/queue/", ""])
def test_A_01_A_03_A_04_what_is_sent_to_underlying_addresses_is_for_the_consumers_of_the_queue(
    cut: bool, prefix: str
) -> None:
    """Whatever routing type is asked for, exact or by a wildcard; in order of arrival."""
    bench = Bench(core=addresses(view()), cut=cut)
    for body, address in zip("abcd", ("orders.us", "orders.eu", "orders.us.ny.1", "orders.asia"), strict=True):
        bench.send(body, to=prefix + address)
    assert bench.count("work") == 3
    bench.subscribe("c", to="work")
    assert bench.got("c") == ["a", "b", "c"]
    bench.send("e", to=f"{prefix}orders.eu")
    assert bench.got("c") == ["e"]


def test_A_01_nothing_is_made_beside_the_view(cut: bool) -> None:
    """A sender of anycast messages would make a queue where nobody takes them; the view does."""
    bench = Bench(core=addresses(view()), cut=cut)
    bench.send("a", to="/queue/orders.eu")
    assert list(bench.world.broker.queues) == ["work"]
    assert bench.world.broker.addresses["orders.eu"].routed_message_count == 1
    assert bench.world.broker.addresses["orders.eu"].unrouted_message_count == 0


def test_A_01_queues_and_diverts_of_the_address_are_as_without_the_view(cut: bool) -> None:
    both = "<multicast><queue name='all'/></multicast><anycast><queue name='one'/><queue name='two'/></anycast>"
    divert = """<diverts><divert name='d'><address>orders.eu</address><forwarding-address>copy</forwarding-address>
        </divert></diverts>"""
    core = addresses(view(ONE), f"<address name='orders.eu'>{both}</address>", view("", "copy")) + divert
    bench = Bench(core=core, cut=cut)
    for body, to in (("a", "/queue/orders.eu"), ("b", "/topic/orders.eu"), ("c", "/queue/orders.eu")):
        bench.send(body, to=to)
    counts = {name: bench.count(name) for name in ("work", "all", "one", "two", "copy")}
    assert counts == {"work": 3, "all": 1, "one": 1, "two": 1, "copy": 3}
    bench.send("d", to="/queue/orders.eu::one")
    assert bench.count("work") == 3, "who names one queue means that queue"


@pytest.mark.parametrize("to", ["/queue/orders.eu", "/topic/orders.eu"])
def test_A_01_the_filter_of_the_view_decides_for_it_alone(cut: bool, to: str) -> None:
    core = addresses(view(ONE, inside="<filter string=\"color = 'red'\"/>"), view(ONE, "others"))
    bench = Bench(core=core, cut=cut)
    for body, color in (("a", "red"), ("b", "blue")):
        bench.send(body, f"color:{color}", to=to)
    assert (bench.count("work"), bench.count("others")) == (1, 2)


def test_A_01_a_message_enters_once_however_often_it_matches(cut: bool) -> None:
    patterns = "underlying-address='orders.#,orders.*, orders.eu , orders.eu' default-publish-target='orders.eu'"
    own = view(patterns.replace("target='orders.eu'", "target='orders.own'"), "orders.own")
    bench = Bench(core=addresses(view(patterns), own), cut=cut)
    bench.send("a", to="/topic/orders.eu")
    bench.send("b", to="/queue/orders.own")
    assert (bench.count("work"), bench.count("orders.own")) == (2, 2)


def test_A_01_addresses_that_come_later_match_and_those_that_go_are_missed_by_nobody(cut: bool) -> None:
    bench = Bench(core=addresses(view()) + "<address-queue-scan-period>1000</address-queue-scan-period>", cut=cut)
    bench.subscribe("s", to="orders.us.la")
    bench.send("a", to="/topic/orders.us.la")
    bench.lose("s")
    for _ in range(4):
        bench.world.advance(1000)
    assert "orders.us.la" not in bench.world.broker.addresses, "nobody needs it any more"
    bench.send("b", to="/topic/orders.us.la")
    bench.subscribe("c", to="work")
    assert bench.got("c") == ["a", "b"]


def test_A_01_temporary_destinations_are_nobody_s_underlying_address(cut: bool) -> None:
    bench = Bench(core=addresses(view("underlying-address='#' default-publish-target='x'")), cut=cut)
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/temp-queue/reply")
    bench.write("c", "SEND", "destination:/temp-queue/reply", body="a")
    assert bench.got("c") == ["a"]
    assert bench.count("work") == 0


def test_A_10_views_of_one_address_are_independent(cut: bool) -> None:
    core = addresses(EU, view(ONE), view(f"{ONE} ring-size='1'", "last"), view(f"{ONE} max-backlog='1'", "slow"))
    bench = Bench(core=core, cut=cut)
    bench.subscribe("done", to="work", ack="auto")
    bench.subscribe("slow", to="slow")
    for body in "abc":
        bench.send(body, to="/topic/orders.eu")
    assert bench.got("done") == ["a", "b", "c"]
    assert bench.got("slow") == ["a"]
    assert (bench.count("work"), bench.count("last"), bench.count("slow")) == (0, 1, 3)


def test_A_10_a_view_that_refuses_refuses_for_all(cut: bool) -> None:
    """As every queue with a limit does: a message comes to all that accept it, or to none."""
    core = addresses(EU, view(ONE), view(f"{ONE} overflow-policy='REJECT' max-depth-messages='1'", "small"))
    bench = Bench(core=core, cut=cut)
    bench.send("a", to="/topic/orders.eu")
    bench.send("b", "receipt:1", to="/topic/orders.eu")
    assert "small" in (bench.error("producer").header("message") or "")
    assert (bench.count("work"), bench.count("small")) == (1, 1)


def test_A_11_the_underlying_address_may_be_subscribed_to(cut: bool) -> None:
    bench = Bench(core=addresses(view()), cut=cut)
    for name in ("c1", "c2"):
        bench.write(name, "SUBSCRIBE", "id:1", "destination:/topic/orders.eu")
    bench.send("a", to="/topic/orders.eu")
    assert bench.got("c1") == bench.got("c2") == ["a"]
    assert bench.count("work") == 1
    for name in ("c1", "c2"):
        bench.lose(name)
    assert bench.count("work") == 1


@pytest.mark.parametrize("attributes", ["", "underlying-address='q'", "underlying-address=' q ,q'"])
def test_A_12_a_queue_over_its_own_address_is_a_queue(cut: bool, attributes: str) -> None:
    bench = Bench(attributes, more="<address name='p'><anycast/></address>", cut=cut)
    assert bench.queue().view is None
    for name in ("c1", "c2"):
        bench.subscribe(name, to="q")
    for body in "ab":
        bench.send(body)
    assert sorted(bench.got("c1") + bench.got("c2")) == ["a", "b"]


def test_A_12_a_queue_may_take_in_others_beside_its_own_address(cut: bool) -> None:
    """Then its own address is one as any other, with queues of its own."""
    both = "underlying-address='orders.eu,orders.us' default-publish-target='orders.eu'"
    queues = f"<queue name='orders.eu' {both}/><queue name='b'/>"
    core = addresses(f"<address name='orders.eu'><anycast>{queues}</anycast></address>")
    bench = Bench(core=core, cut=cut)
    for body, to in (("a", "/queue/orders.eu"), ("b", "/topic/orders.eu"), ("c", "/queue/orders.us")):
        bench.send(body, to=to)
    assert (bench.count("orders.eu"), bench.count("b")) == (3, 1)


def test_A_38_fairness_counts_the_consumers_of_each_queue_alone(cut: bool) -> None:
    """What is out of one view's messages is nothing to another view of the same address."""
    fair = f"{ONE} max-per-subscription-backlog='4' fairness-model="
    bench = Bench(core=addresses(EU, view(f"{fair}'proportional'"), view(f"{fair}'fast'", "fast")), cut=cut)
    for name, queue in (("p1", "work"), ("p2", "work"), ("f1", "fast"), ("f2", "fast")):
        bench.subscribe(name, "max-backlog:4", to=queue)
    for body in "abcd":
        bench.send(body, to="/topic/orders.eu")
    assert (bench.got("p1"), bench.got("p2")) == (["a", "c"], ["b", "d"])
    assert (bench.got("f1"), bench.got("f2")) == (["a", "b", "c", "d"], [])


# ---- sending to the queue itself -----------------------------------------------------------------


@pytest.mark.parametrize("to", ["/queue/work", "work", "/queue/work::work", "/topic/work", "::work"])
def test_A_14_what_is_sent_to_the_queue_is_published_on_its_target(cut: bool, to: str) -> None:
    bench = Bench(core=addresses(DESK, view()), cut=cut)
    bench.write("s", "SUBSCRIBE", "id:1", "destination:/topic/orders.eu")
    bench.send("a", to=to)
    (frame,) = bench.messages("s")
    assert frame.header("destination") == to.replace(":", "\\c"), "the destination is as its sender wrote it"
    assert (bench.count("work"), bench.count("desk")) == (1, 1)
    assert bench.world.broker.addresses["work"].routed_message_count == 0


def test_A_14_a_message_sent_to_the_queue_belongs_to_the_target(cut: bool) -> None:
    """Its memory, its expiry, its limits, and its name in selectors; in runs and transactions, too."""
    core = addresses(
        EU, view(), settings="<max-size-messages>4</max-size-messages><address-full-policy>FAIL</address-full-policy>"
        "<expiry-delay>60000</expiry-delay>", match="orders.eu"
    )  # fmt: skip
    bench = Bench(core=core, cut=cut)
    bench.write("producer", "SEND", "destination:/queue/work", body="a")
    bench.world.together = True
    for body in "bc":
        bench.write("producer", "SEND", "destination:/queue/work", body=body)
    bench.world.together = False
    bench.world.settle()
    bench.write("producer", "BEGIN", "transaction:t")
    bench.write("producer", "SEND", "destination:/queue/work", "transaction:t", body="d")
    bench.write("producer", "COMMIT", "transaction:t")
    messages: list[Message] = [entry.message for entry in bench.queue("work").contents.order]
    assert [message.body for message in messages] == [b"a", b"b", b"c", b"d"]
    assert {message.head.address for message in messages} == {"orders.eu"}
    assert {message.lookup("AMQAddress") for message in messages} == {"orders.eu"}
    assert all(message.expires_ms for message in messages)
    accounts = {name: address.account.message_count for name, address in bench.world.broker.addresses.items()}
    assert accounts == {"orders.eu": 4, "work": 0}
    bench.send("e", "receipt:1", to="/queue/work")
    assert "orders.eu is full" in (bench.error("producer").header("message") or "")


def test_A_14_copies_for_the_queue_are_published_on_its_target(cut: bool) -> None:
    """Diverted, dead and expired ones."""
    core = addresses(
        view(), view("", "q"), settings="<dead-letter-address>work</dead-letter-address>"
        "<expiry-address>work</expiry-address><max-delivery-attempts>1</max-delivery-attempts>"
        "<auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"
    ) + """<diverts><divert name='d'><address>from</address><forwarding-address>work</forwarding-address></divert>
        </diverts>"""  # fmt: skip
    bench = Bench(core=core, cut=cut)
    bench.send("diverted", to="/topic/from")
    bench.send("dead")
    bench.subscribe("c")
    (frame,) = bench.messages("c")
    bench.settle("c", frame, "NACK")
    bench.leave("c")
    bench.send("expired", f"expires:{bench.world.now_ms + 10}")
    bench.world.advance(60_000)
    taken = [entry.message for entry in bench.queue("work").contents.order]
    assert [message.body for message in taken] == [b"diverted", b"dead", b"expired"]
    assert {message.head.address for message in taken} == {"orders.eu"}
    assert sorted(bench.world.broker.queues) == ["q", "work"]


def test_A_14_send_on_the_queue_is_enough_and_gives_nothing_else() -> None:
    """The address over which it is exists for nobody who may not use it."""
    shop = SecuredBroker(
        setting("#", send="boss"), setting("work", send="clerk", consume="cook"), core=addresses(EU, view())
    )
    clerk, cook = shop.login("cl", "clerk"), shop.login("co", "cook")
    for destination in ("/queue/work", "/queue/work::work", "/queue/work"):
        assert clerk.send(destination) is None
        assert cook.send(destination) == denied("co", "SEND", "work", *(["work"] if "::" in destination else []))
    for person, name in ((clerk, "cl"), (cook, "co")):
        assert person.send("/topic/orders.eu") == denied(name, "SEND", "orders.eu")
    assert shop.queue("work").message_count == 3
    assert clerk.subscribe("/queue/work") == denied("cl", "CONSUME", "work", "work")
    assert cook.subscribe("/queue/work", ack="client-individual") is None
    for frame in cook.messages():
        assert cook.frame("ACK", message_id=frame.header("message-id") or "", subscription="1") is None
    assert shop.queue("work").message_count == 0, "who may read may acknowledge"


def test_A_14_nobody_needs_to_be_allowed_to_create_the_target() -> None:
    """broker.xml names it, and so it is not counted, either."""
    core = addresses(view()) + "<max-addresses>1</max-addresses>"
    shop = SecuredBroker(setting("work", send="clerk"), core=core)
    clerk = shop.login("cl", "clerk")
    assert clerk.send("/queue/work") is None
    assert shop.names == ({"work", "orders.eu"}, {"work"})


def test_A_14_the_address_of_a_view_is_nobody_else_s(cut: bool) -> None:
    """Another queue there would get nothing, and its consumer would wait for ever."""
    bench = Bench(core=addresses(view()), cut=cut)
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/topic/work")
    refused = "Address work belongs to the view work\\c another queue on it would get nothing"
    assert refused in (bench.error("c").header("message") or "")
    bench.write("d", "SUBSCRIBE", "id:1", "destination:/queue/work::other")
    assert refused in (bench.error("d").header("message") or "")
    assert list(bench.world.broker.queues) == ["work"]


def test_a_view_that_goes_takes_nothing_with_it(cut: bool) -> None:
    """Routes and plans that knew it are made anew; the name is an address as any other."""
    bench = Bench(core=addresses(view()), cut=cut)
    bench.write("s", "SUBSCRIBE", "id:1", "destination:/topic/orders.eu")
    for to in ("/topic/orders.eu", "/queue/work"):
        bench.send("a", to=to)
    bench.write("producer", "BEGIN", "transaction:t")
    bench.write("producer", "SEND", "destination:/queue/work", "transaction:t", body="c")
    broker: Broker = bench.world.broker
    broker.registry.delete_queue(bench.queue("work"), bench.world.now_ms)
    for to in ("/topic/orders.eu", "/queue/work"):
        bench.send("b", to=to)
    bench.write("producer", "COMMIT", "transaction:t")
    assert bench.got("s") == ["a", "a", "b"]
    assert [entry.message.body for entry in bench.queue("work").contents.order] == [b"b", b"c"]
    assert {entry.message.head.address for entry in bench.queue("work").contents.order} == {"work"}
    assert bench.queue("work").view is None


# ---- one body ------------------------------------------------------------------------------------


def test_A_15_a_body_is_kept_once_however_many_views_have_it() -> None:
    """In memory and in the log: one record with the numbers of all queues."""
    life = Life("", more=EU + "".join(view(ONE, f"v{number}") for number in range(20)))
    life.write("client", "SEND", "destination:/topic/orders.eu", "persistent:true", body="x" * 10_000)
    broker = life.core
    kept = {id(entry.message) for number in range(20) for entry in broker.queues[f"v{number}"].contents.order}
    assert len(kept) == 1
    assert 10_000 < broker.memory_bytes < 11_000
    found = [record for record in records(life.disk, last_segment(life.disk)) if record.type_code == MESSAGE]
    assert len(found) == 1
    again = life.again().broker.broker
    kept = {id(entry.message) for number in range(20) for entry in again.queues[f"v{number}"].contents.order}
    assert len(kept) == 1
    assert 10_000 < again.memory_bytes < 11_000


PAGES = "<max-size-messages>0</max-size-messages><page-size-bytes>2000</page-size-bytes>"


def test_A_15_in_pages_a_body_is_kept_once_too() -> None:
    life = Life("", more=EU + "".join(view(ONE, f"v{number}") for number in range(5)), settings=PAGES)
    for body in "abc":
        life.write("client", "SEND", "destination:/topic/orders.eu", "persistent:true", body=body * 100)
    broker = life.core
    stream = broker.addresses["orders.eu"].stream
    assert stream is not None
    assert sum(page.count for page in stream.pages) == 3
    assert [broker.queues[f"v{number}"].contents.paged.count for number in range(5)] == [3] * 5
    assert broker.memory_bytes == 0


# ---- restarts and pages --------------------------------------------------------------------------


FOUR = [("a", "/topic/orders.eu"), ("b", "/topic/orders.us.ny"), ("c", "/queue/work"), ("d", "/topic/orders.us")]


def test_A_01_A_09_a_view_is_the_same_after_a_restart() -> None:
    life = Life("", more=view() + DESK)
    for body, to in FOUR:
        life.send(body, to=to)
    assert life.read("reader", 2, of="work") == ["a", "b"]
    life = life.again()
    accounts = {name: address.account.message_count for name, address in life.core.addresses.items()}
    assert (accounts["orders.eu"], accounts["work"]) == (1, 0)
    life.send("e", to="/queue/work")
    assert life.read(of="work") == ["b", "c", "d", "e"]
    assert life.again().read(of="desk") == ["c", "e"]


def test_A_01_a_view_that_the_file_forgot_is_one_until_it_is_deleted() -> None:
    life = Life("", more=view())
    for body, to in FOUR[:2]:
        life.send(body, to=to)
    life = Life("", life.disk)
    assert life.queue("work").view is not None
    for body, to in FOUR[2:]:
        life.send(body, to=to)
    life = life.again()
    assert life.read(of="work") == ["a", "b", "c", "d"]
    life.core.registry.delete_queue(life.queue("work"), life.broker.loop.now_ms)
    life = life.again()
    life.send("e", to="/queue/work")
    assert life.queue("work").view is None


def test_A_01_a_queue_becomes_a_view_and_a_view_a_queue() -> None:
    """It keeps its messages."""
    life = Life("", more=view(""))
    life.send("a", to="/queue/work")
    life.send("x", to="/topic/orders.eu")
    life = Life("", life.disk, more=view())
    life.send("b", to="/queue/work")
    life.send("c", to="/topic/orders.us")
    life = Life("", life.disk, more=view(""))
    life.send("d", to="/queue/work")
    life.send("x", to="/topic/orders.us")
    assert life.read(of="work") == ["a", "b", "c", "d"]


@pytest.mark.parametrize("paged", ["orders.#", "orders.eu", "#"])
def test_A_01_a_view_reads_the_pages_of_all_its_addresses(paged: str) -> None:
    """Also after a restart, and beside what is in memory; each address in order."""
    settings = f"<address-settings><address-setting match='{paged}'>{PAGES}</address-setting></address-settings>"
    core = f"<addresses>{view()}{DESK}</addresses>{settings}"
    life = Life("", instead=core)
    numbers = random.Random(1)
    all_sent: dict[str, list[str]] = {}
    of_desk: list[str] = []
    for _ in range(3):
        for number in range(20):
            body = f"{len(all_sent)}-{number}-{numbers.random()}"
            to = numbers.choice(["/topic/orders.eu", "/topic/orders.us", "/topic/orders.us.ny", "/queue/work"])
            life.send(body, to=to)
            all_sent.setdefault("/topic/orders.eu" if to == "/queue/work" else to, []).append(body)
            of_desk += [body] if to == "/queue/work" else []
        life = life.again()
    queue = life.queue("work")
    assert queue.message_count == 60
    first = life.read("reader", 10, of="work")
    life = life.again()
    rest = life.read(of="work")
    assert len(first + rest) == 61
    assert first[-1] in rest, "what was not acknowledged comes again"
    assert sorted({*first, *rest}) == sorted(body for bodies in all_sent.values() for body in bodies)
    for bodies in all_sent.values():
        assert [body for body in rest if body in bodies] == [body for body in bodies if body in rest]
    assert life.read(of="desk") == of_desk
    assert life.core.addresses["orders.eu"].number_of_pages == 0


def test_a_disk_that_was_used_without_views_is_read() -> None:
    """Records of queues from before there were views have no such attribute."""
    life = Life("", SimDisk(random.Random(3)), more=view(""))
    life.send("a", to="/queue/work")
    assert life.again().read(of="work") == ["a"]
