"""Which frames of somebody who has logged in are carried out, and which are refused."""

from __future__ import annotations

from itertools import product

import pytest

from tests.kit.permitted import SecuredBroker, denied, setting
from tests.wire.test_forged_headers import PATTERNS, VALUES, acceptable, read_weakly

ALL = dict.fromkeys(
    (
        "send", "consume", "browse", "createAddress", "createDurableQueue", "deleteDurableQueue",
        "createNonDurableQueue", "deleteNonDurableQueue", "manage",
    ),
    "boss",
)  # fmt: skip
BOSS = setting("#", **ALL)
SHOP = """<addresses>
  <address name="orders"><anycast><queue name="orders"/></anycast></address>
  <address name="news"><multicast/></address>
  <address name="pair"><anycast><queue name="left"/><queue name="right"/></anycast></address>
  <address name="vault"><anycast><queue name="vault"/></anycast></address>
</addresses>"""


def test_send_needs_send() -> None:
    shop = SecuredBroker(BOSS, setting("orders", send="clerk", consume="cook"), core=SHOP)
    clerk, cook = shop.login("cl", "clerk"), shop.login("co", "cook")
    assert clerk.send("orders") is None
    assert cook.send("orders") == denied("co", "SEND", "orders")
    assert cook.subscribe("orders") is None
    assert [frame.body for frame in cook.messages()] == [b"x"]
    assert clerk.subscribe("orders") == denied("cl", "CONSUME", "orders", "orders")
    assert (shop.authorizer.checks.success, shop.authorizer.checks.failure) == (2, 2)


def test_the_most_specific_setting_alone_decides() -> None:
    shop = SecuredBroker(BOSS, setting("orders", send="clerk"), core=SHOP)
    assert shop.login("b", "boss").send("orders") == denied("b", "SEND", "orders")


def test_without_a_setting_nobody_may_do_anything() -> None:
    shop = SecuredBroker(setting("orders", send="clerk"), core=SHOP)
    assert shop.login("cl", "clerk", "boss").send("vault") == denied("cl", "SEND", "vault")


def test_a_route_that_one_may_use_does_not_let_in_another() -> None:
    """Connections share routes."""
    shop = SecuredBroker(BOSS, setting("orders", send="clerk"), core=SHOP)
    clerk, guest = shop.login("cl", "clerk"), shop.login("g", "guest")
    for _ in range(3):
        assert clerk.send("orders") is None
        assert guest.send("orders") == denied("g", "SEND", "orders")
    assert shop.queue("orders").message_count == 3


def test_a_run_of_sends_is_refused_one_by_one() -> None:
    shop = SecuredBroker(BOSS, core=SHOP)
    guest = shop.login("g", "guest")
    guest.client.send(b"SEND\ndestination:orders\n\nx\0" * 5)
    assert [frame.command for frame in guest.client.collect()] == ["ERROR"] * 5
    assert shop.queue("orders").message_count == 0


def test_stomp_1_2_ends_the_session() -> None:
    shop = SecuredBroker(BOSS, core=SHOP)
    guest = shop.login("g", "guest", version="1.2")
    guest.client.send(b"SEND\ndestination:orders\nreceipt:1\n\nx\0SEND\ndestination:orders\n\nx\0")
    (error,) = guest.client.collect()
    assert (error.command, error.header("receipt-id")) == ("ERROR", "1")
    assert guest.client.is_closed


# ---- creation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        ({"send": "r", "createDurableQueue": "r"}, denied("u", "CREATE_ADDRESS", "new")),
        ({"send": "r", "createAddress": "r"}, denied("u", "CREATE_DURABLE_QUEUE", "new", "new")),
        ({"createAddress": "r", "createDurableQueue": "r"}, denied("u", "SEND", "new")),
        ({"send": "r", "createAddress": "r", "createDurableQueue": "r"}, None),
    ],
)
def test_a_sender_creates_only_what_it_may_use(granted: dict[str, str], missing: str | None) -> None:
    shop = SecuredBroker(BOSS, setting("new", **granted))
    before = shop.names
    assert shop.login("u", "r").send("/queue/new") == missing
    assert (shop.names == before) == (missing is not None)


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        ({"consume": "r", "createDurableQueue": "r"}, denied("u", "CREATE_ADDRESS", "new")),
        ({"consume": "r", "createAddress": "r"}, denied("u", "CREATE_DURABLE_QUEUE", "new", "new")),
        ({"createAddress": "r", "createDurableQueue": "r"}, denied("u", "CONSUME", "new", "new")),
        ({"consume": "r", "createAddress": "r", "createDurableQueue": "r"}, None),
    ],
)
def test_a_consumer_creates_only_what_it_may_use(granted: dict[str, str], missing: str | None) -> None:
    shop = SecuredBroker(BOSS, setting("new", **granted))
    before = shop.names
    assert shop.login("u", "r").subscribe("/queue/new") == missing
    assert (shop.names == before) == (missing is not None)


def test_a_topic_needs_no_queue_to_send_to() -> None:
    shop = SecuredBroker(BOSS, setting("new", send="r", createAddress="r"))
    assert shop.login("u", "r").send("/topic/new") is None
    assert shop.names == ({"new"}, set())


def test_where_settings_create_nothing_nobody_is_asked() -> None:
    shop = SecuredBroker(
        setting("#", send="r"),
        core="""<address-settings><address-setting match="#"><auto-create-addresses>false</auto-create-addresses>
        <auto-create-queues>false</auto-create-queues></address-setting></address-settings>"""
        '<addresses><address name="bare"><anycast/></address></addresses>',
    )
    person = shop.login("u", "r")
    assert person.send("bare") is None
    error = person.send("nowhere")
    assert error is not None
    assert error.startswith("Address nowhere does not exist")


def test_a_topic_subscription() -> None:
    shop = SecuredBroker(
        BOSS,
        setting("news", send="boss", consume="reader,half", createNonDurableQueue="reader,lost",
                deleteNonDurableQueue="reader"),
        core=SHOP,
    )  # fmt: skip
    half, lost, reader = shop.login("h", "half"), shop.login("l", "lost"), shop.login("r", "reader")
    before = shop.names
    error = half.subscribe("news")
    assert error is not None
    assert error.startswith("AMQ229213: User: h does not have permission='CREATE_NON_DURABLE_QUEUE' for queue temp")
    error = lost.subscribe("news")
    assert error is not None
    assert "permission='CONSUME'" in error
    assert shop.names == before
    assert reader.subscribe("news") is None
    assert shop.login("b", "boss").send("/topic/news") is None
    assert len(reader.messages()) == 1
    assert reader.frame("UNSUBSCRIBE", id="1") is None
    assert shop.names == before


def test_to_leave_a_topic_needs_a_permission_too() -> None:
    """As in Artemis, whose queue then stays until the connection ends. Here the subscription stays as well."""
    shop = SecuredBroker(BOSS, setting("news", consume="r", createNonDurableQueue="r"), core=SHOP)
    reader = shop.login("u", "r")
    assert reader.subscribe("news") is None
    error = reader.frame("UNSUBSCRIBE", id="1")
    assert error is not None
    assert "permission='DELETE_NON_DURABLE_QUEUE' for queue temporary-" in error
    assert shop.login("b", "boss").send("/topic/news") == denied("b", "SEND", "news")
    assert len(shop.names[1]) == 5
    assert reader.frame("DISCONNECT") is None
    assert len(shop.names[1]) == 4, "the broker removes what a connection leaves behind"


def test_a_durable_subscription() -> None:
    granted = {"consume": "r,x", "createDurableQueue": "r,x", "deleteDurableQueue": "x"}
    shop = SecuredBroker(BOSS, setting("news", **granted), core=SHOP)
    name = {"durable_subscription_name": "daily"}
    reader, remover, nobody = shop.login("u", "r"), shop.login("v", "x"), shop.login("w", "none")
    assert nobody.subscribe("news", **name) == denied("w", "CREATE_DURABLE_QUEUE", "news", "w-id.daily")
    assert reader.subscribe("news", **name) is None
    assert reader.frame("UNSUBSCRIBE", id="1", **name) == denied("u", "DELETE_DURABLE_QUEUE", "news", "u-id.daily")
    assert shop.queue("u-id.daily").consumer_count == 1
    assert reader.frame("UNSUBSCRIBE", id="1") is None
    assert shop.queue("u-id.daily").consumer_count == 0
    assert reader.frame("UNSUBSCRIBE", id="other", **name) == denied("u", "DELETE_DURABLE_QUEUE", "news", "u-id.daily")
    assert remover.subscribe("news", **name) is None
    assert remover.frame("UNSUBSCRIBE", id="1", **name) is None
    assert shop.names[1] == {"orders", "left", "right", "vault", "u-id.daily"}


# ---- names -----------------------------------------------------------------------------------------


def test_fully_qualified_names() -> None:
    shop = SecuredBroker(
        BOSS,
        setting("pair", send="p", consume="p"),
        setting("pair::left", send="q", consume="q"),
        setting("pair::*", send="s", consume="s"),
        core=SHOP,
    )
    p, q, s = shop.login("p", "p"), shop.login("q", "q"), shop.login("s", "s")
    assert q.send("pair::left") is None
    assert q.send("pair::right") == denied("q", "SEND", "pair", "right")
    assert q.send("pair") == denied("q", "SEND", "pair")
    assert p.send("pair::left") == denied("p", "SEND", "pair", "left")
    assert p.send("pair::right") is None
    assert p.send("pair") is None
    assert s.send("pair::left") == denied("s", "SEND", "pair", "left")
    assert q.subscribe("pair::left") is None
    assert q.subscribe("pair::right", "2") == denied("q", "CONSUME", "pair", "right")
    assert p.subscribe("pair::left") == denied("p", "CONSUME", "pair", "left")
    assert q.send("::left") is None
    assert p.send("::left") == denied("p", "SEND", "pair", "left")


def test_a_queue_is_never_created_in_full_without_permission() -> None:
    shop = SecuredBroker(BOSS, setting("pair", send="p", consume="p"), core=SHOP)
    before = shop.names
    p = shop.login("p", "p")
    assert p.send("pair::third") == denied("p", "CREATE_DURABLE_QUEUE", "pair", "third")
    assert p.subscribe("pair::third") == denied("p", "CREATE_DURABLE_QUEUE", "pair", "third")
    assert p.send("new::third") == denied("p", "CREATE_ADDRESS", "new")
    assert p.send("vault::left") == denied("p", "SEND", "vault", "left")
    assert shop.names == before


def test_the_name_of_a_queue_opens_no_other_address() -> None:
    """A queue that has another address' name, and the only queue of an address."""
    core = """<addresses><address name="open"><anycast><queue name="shut"/></anycast></address>
    <address name="shut"><anycast><queue name="inner"/></anycast></address></addresses>"""
    shop = SecuredBroker(BOSS, setting("open", send="r", consume="r"), core=core)
    person = shop.login("u", "r")
    assert person.subscribe("shut") == denied("u", "CONSUME", "shut", "inner")
    assert person.subscribe("::inner") == denied("u", "CONSUME", "shut", "inner")
    assert person.subscribe("open") is None, "the only queue of an address that is open"
    assert person.send("shut::shut") == denied("u", "SEND", "shut", "shut")


def test_the_older_name_of_a_queue() -> None:
    """``address.queue``, written out, gives a consumer a second chance, unless it names the queue in full; nothing
    else does.
    """
    shop = SecuredBroker(
        BOSS, setting("news.u-id.daily", consume="r", send="r"), setting("news.*", consume="r"),
        setting("news", consume="boss", createDurableQueue="r"), core=SHOP,
    )  # fmt: skip
    person = shop.login("u", "r")
    assert person.subscribe("news", durable_subscription_name="daily") is None
    weekly = denied("u", "CONSUME", "news", "u-id.weekly")
    assert person.subscribe("news", "2", durable_subscription_name="weekly") == weekly
    assert person.subscribe("news::u-id.daily", "2") == denied("u", "CONSUME", "news", "u-id.daily")
    assert person.send("news::u-id.daily") == denied("u", "SEND", "news", "u-id.daily")


def test_browsers_need_browse() -> None:
    shop = SecuredBroker(BOSS, setting("orders", browse="b", consume="c"), core=SHOP)
    browser, consumer = shop.login("b", "b"), shop.login("c", "c")
    assert browser.subscribe("orders", browser="true") is None
    assert browser.subscribe("orders", "2") == denied("b", "CONSUME", "orders", "orders")
    assert consumer.subscribe("orders", browser="true") == denied("c", "BROWSE", "orders", "orders")


def test_who_browses_what_does_not_exist_hears_of_no_secret_queue() -> None:
    """A similar name is told to who may browse it; who may not browse the name asked for hears nothing at all."""
    looks = {"browser": "true", "auto_create": "false"}
    shop = SecuredBroker(setting("orders", browse="b"), setting("#", browse="b,c"), core=SHOP)
    names = shop.names
    browser, other, guest = shop.login("b", "b"), shop.login("c", "c"), shop.login("g", "g")
    assert browser.subscribe("/queue/ordres", **looks) == "There is no queue ordres; did you mean orders?"
    assert other.subscribe("/queue/ordres", **looks) == "There is no queue ordres"
    assert guest.subscribe("/queue/ordres", **looks) == denied("g", "BROWSE", "ordres", "ordres")
    assert guest.subscribe("a::b", **looks) == denied("g", "BROWSE", "a", "b")
    assert guest.subscribe("pair::left", **looks) == denied("g", "BROWSE", "pair", "left")
    assert shop.names == names


def test_the_management_address_needs_manage_and_that_of_notifications_consume() -> None:
    shop = SecuredBroker(setting("activemq.#", send="s", consume="s", createNonDurableQueue="s", manage="m"))
    sender, manager = shop.login("s", "s"), shop.login("m", "m")
    assert sender.send("activemq.management") == denied("s", "MANAGE", "activemq.management")
    error = manager.send("activemq.management")
    assert error is not None
    assert "nobody answers here" in error
    assert manager.subscribe("activemq.notifications") == denied("m", "CONSUME", "activemq.notifications")
    assert sender.subscribe("activemq.notifications") is None


# ---- what the broker does itself -------------------------------------------------------------------


def test_copies_are_not_the_senders() -> None:
    core = (
        SHOP + '<diverts><divert name="d"><address>orders</address><forwarding-address>vault</forwarding-address>'
        "</divert></diverts><address-settings><address-setting match='#'>"
        "<dead-letter-address>dead</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>"
        "<auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"
        "</address-setting></address-settings>"
    )
    shop = SecuredBroker(BOSS, setting("orders", send="r", consume="r"), core=core)
    person = shop.login("u", "r")
    assert person.send("orders") is None
    assert shop.queue("vault").message_count == 1
    assert person.subscribe("orders", ack="client") is None
    (message,) = person.messages()
    id = message.header("message-id")
    assert id is not None
    assert person.frame("NACK", message_id=id, subscription="1") is None
    assert shop.queue("DLQ.orders").message_count == 1
    assert person.subscribe("dead::DLQ.orders", "2") == denied("u", "CONSUME", "dead", "DLQ.orders")


def test_transactions_are_checked_when_they_are_filled() -> None:
    shop = SecuredBroker(BOSS, setting("orders", send="r"), core=SHOP)
    person = shop.login("u", "r")
    assert person.frame("BEGIN", transaction="t") is None
    assert person.send("orders", transaction="t") is None
    assert person.send("vault", transaction="t") == denied("u", "SEND", "vault")
    person.client.collect().clear()
    person.client.send(b"SEND\ndestination:vault\ntransaction:t\n\nx\0")
    assert [frame.command for frame in person.client.collect()] == ["ERROR"]
    assert person.frame("COMMIT", transaction="t") is None
    assert (shop.queue("orders").message_count, shop.queue("vault").message_count) == (1, 0)


# ---- temporary destinations ------------------------------------------------------------------------

OWN = {"createAddress": "r", "createNonDurableQueue": "r", "consume": "r"}


def test_a_temporary_queue() -> None:
    shop = SecuredBroker(setting("temp-queue.#", **OWN, send="s"), setting("temp-topic.#", **OWN))
    owner, sender = shop.login("u", "r"), shop.login("v", "s")
    assert owner.subscribe("/temp-queue/mine") is None
    (address,) = shop.names[0]
    assert sender.send(address) is None
    assert len(owner.messages()) == 1
    assert owner.send(address) == denied("u", "SEND", address)
    error = sender.subscribe(address)
    assert error is not None
    assert "is a temporary destination of another client" in error
    assert owner.subscribe("/temp-topic/mine", "2") is None


@pytest.mark.parametrize("left_out", sorted(OWN))
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_temporary_destination_is_not_made_in_vain(left_out: str, kind: str) -> None:
    granted = {name: roles for name, roles in OWN.items() if name != left_out}
    shop = SecuredBroker(setting("#", **granted, send="r"), setting("out", send="r"), core=(
        '<addresses><address name="out"><anycast><queue name="out"/></anycast></address></addresses>'
    ))  # fmt: skip
    person = shop.login("u", "r")
    before = shop.names
    assert person.subscribe(f"/temp-{kind}/mine") is not None
    assert person.send("out", reply_to=f"/temp-{kind}/mine") is not None
    assert shop.names == before
    assert shop.queue("out").message_count == 0


# ---- what is noted ---------------------------------------------------------------------------------


def test_each_user_and_address_is_told_of_once() -> None:
    shop = SecuredBroker(BOSS, core=SHOP)
    guest, other = shop.login("g", "guest"), shop.login("o", "guest")
    for _ in range(3):
        guest.send("orders")
        guest.send("vault")
        guest.send("n" * 1000)
    other.send("orders")
    assert shop.told == [
        (denied("g", "SEND", "orders"), "denied to g"),
        (denied("g", "SEND", "vault"), "denied to g"),
        (denied("g", "CREATE_ADDRESS", "n" * 256), "denied to g"),
        (denied("o", "SEND", "orders"), "denied to o"),
    ]
    assert (shop.authorizer.checks.success, shop.authorizer.checks.failure) == (0, 10)


def test_names_without_end_are_forgotten() -> None:
    shop = SecuredBroker(BOSS, core="<authorization-cache-size>10</authorization-cache-size>")
    guest = shop.login("g", "guest")
    for number in range(1500):
        guest.send(f"n{number}")
    assert len(shop.authorizer._deciders) == 10
    assert len(shop.authorizer._told) <= 1000


def test_a_users_sessions_share_rights_and_the_last_one_takes_them_along() -> None:
    shop = SecuredBroker(BOSS, core=SHOP)
    for name in ("one", "two"):
        shop.login("g", "guest", name=name)
    assert len(shop.authorizer._rights) == 1
    shop.login("g", "other", name="three")
    assert len(shop.authorizer._rights) == 2


# ---- the user's name in messages -------------------------------------------------------------------

POPULATE = "<populate-validated-user>true</populate-validated-user>"
READ_ALL = setting("#", **dict.fromkeys(ALL, "r"))


def test_messages_name_their_sender() -> None:
    shop = SecuredBroker(READ_ALL, core=SHOP + POPULATE)
    person = shop.login("b:b", "r")
    assert person.send("orders") is None
    assert person.send("orders", JMSXUserID="boss") is None
    assert person.send("orders", **{" JMSXUserID ": "boss", "XJMSXUserID": "kept"}) is None
    assert person.send("orders", expires="9999999999999", JMSXUserID="boss") is None
    assert person.frame("BEGIN", transaction="t") is None
    person.client.send(b"SEND\ndestination:orders\ntransaction:t\nJMSXUserID:boss\n\nx\0" * 2)
    assert person.send("orders", transaction="t") is None
    assert person.frame("COMMIT", transaction="t") is None
    reader = shop.login("reader", "r")
    assert reader.subscribe("orders", selector="JMSXUserID = 'b:b'") is None
    frames = reader.messages()
    assert [frame.header("JMSXUserID") for frame in frames] == ["b\\cb"] * 7
    assert all("boss" not in frame.text for frame in frames)
    assert [frame.header("XJMSXUserID") for frame in frames].count("kept") == 1


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_no_sender_writes_another_ones_name(version: str) -> None:
    """However the name is disguised for readers that strip or unescape."""
    shop = SecuredBroker(READ_ALL, core=SHOP + POPULATE)
    person, reader = shop.login("u", "r", version=version), shop.login("reader", "r", version="1.2")
    assert reader.subscribe("orders", ack="auto") is None
    count = 0
    for pattern, value in product(PATTERNS, VALUES):
        line = f"{pattern.format('JMSXUserID')}:{value.format('JMSXUserID')}"
        if not acceptable(line, version):
            continue
        reader.client.transport.taken.clear()
        person.client.send(f"SEND\ndestination:orders\n{line}\n\nx\0".encode())
        data = bytes(reader.client.transport.taken)
        assert data.startswith(b"MESSAGE\n"), line
        assert read_weakly(data)["JMSXUserID"] == {"u"}, (line, data)
        count += 1
    assert count > 20


def test_without_the_setting_a_client_writes_what_it_likes() -> None:
    shop = SecuredBroker(READ_ALL, core=SHOP)
    assert shop.login("u", "r").send("orders", JMSXUserID="me") is None
    reader = shop.login("reader", "r")
    assert reader.subscribe("orders") is None
    assert [frame.header("JMSXUserID") for frame in reader.messages()] == ["me"]


def test_messages_without_a_user_can_be_refused() -> None:
    rejects = "<reject-empty-validated-user>true</reject-empty-validated-user>"
    reason = "AMQ229225: Validated User is not set"
    shop = SecuredBroker(READ_ALL, core=SHOP + rejects)
    person = shop.login("u", "r")
    assert [person.send("orders"), person.send("orders")] == [reason, reason]
    shop = SecuredBroker(READ_ALL, core=SHOP + rejects + POPULATE)
    assert shop.login("u", "r").send("orders") is None
    nobody = shop.login("", "r", name="nobody")
    assert [nobody.send("orders"), nobody.send("orders")] == [reason, reason]
    open_to_all = shop.login("open", name="open")
    open_to_all.client.connection.session.state.rights = None
    assert open_to_all.send("vault") == reason
