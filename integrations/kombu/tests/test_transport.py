"""What kombu asks of a transport, with a real broker. Two connections stand for two processes."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import kombu
import pytest
from artemis_py_kombu.stomp_connection import LostError
from kombu.exceptions import ChannelError

from artemis_py.testing import ArtemisBroker

Connect = Callable[..., kombu.Connection]


def publish(connection: kombu.Connection, body: Any, **options: Any) -> None:
    kombu.Producer(connection.default_channel).publish(body, **options)


class Reader:
    """A consumer that keeps what comes."""

    def __init__(self, connection: kombu.Connection, *queues: kombu.Queue, prefetch: int = 0, **options: Any) -> None:
        self.messages: list[kombu.Message] = []
        self.connection = connection
        self.consumer = connection.Consumer(
            queues, on_message=self.messages.append, prefetch_count=prefetch or None, auto_declare=True, **options
        )
        self.consumer.consume()

    def read(self, count: int = 1) -> list[Any]:
        """The next messages, which stay unacknowledged."""
        self.messages.clear()
        for _ in range(count):
            self.connection.drain_events(timeout=5)
        assert len(self.messages) == count
        return [message.decode() for message in self.messages]

    def has_more(self) -> bool:
        """Does another one come?"""
        try:
            self.connection.drain_events(timeout=0.1)
        except TimeoutError:
            return False
        return True


# ---- exchanges ---------------------------------------------------------------------------------------


def test_other_processes_see_the_bindings_of_a_direct_exchange(connect: Connect) -> None:
    exchange = kombu.Exchange("orders", "direct")
    eu, us = (kombu.Queue(name, exchange, routing_key=name) for name in ("eu", "us"))
    reader = Reader(connect(), eu, us)
    sender = connect()
    for key in ("eu", "us", "nowhere"):
        publish(sender, key, exchange=exchange, routing_key=key)
    assert sorted(reader.read(2)) == ["eu", "us"]
    assert not reader.has_more()


def test_a_queue_has_several_bindings_and_gets_each_message_once_for_each(connect: Connect) -> None:
    orders, news = kombu.Exchange("orders", "topic"), kombu.Exchange("news", "fanout")
    queue = kombu.Queue(
        "all", bindings=[kombu.binding(orders, "eu.*"), kombu.binding(orders, "us.#"), kombu.binding(news)]
    )
    reader = Reader(connect(), queue)
    sender = connect()
    for key in ("eu", "eu.de", "eu.de.by", "us", "us.ny.x"):
        publish(sender, key, exchange=orders, routing_key=key)
    publish(sender, "goal", exchange=news)
    assert reader.read(4) == ["eu.de", "us", "us.ny.x", "goal"]
    assert not reader.has_more()


def test_every_queue_of_a_fanout_gets_a_copy_also_one_that_goes_with_its_client(connect: Connect) -> None:
    exchange = kombu.Exchange("news", "fanout")
    readers = [
        Reader(connect(), kombu.Queue("kept", exchange)),
        Reader(connect(), kombu.Queue("mine", exchange, auto_delete=True)),
        Reader(connect(), kombu.Queue("only", exchange, exclusive=True)),
    ]
    publish(connect(), "goal", exchange=exchange)
    assert [reader.read() for reader in readers] == [["goal"]] * 3


def test_a_queue_that_goes_with_its_client_is_gone(artemis: ArtemisBroker, connect: Connect) -> None:
    exchange = kombu.Exchange("news", "topic")
    reader = Reader(connect(), kombu.Queue("mine", exchange, routing_key="sport", auto_delete=True))
    assert "mine" in artemis.queues
    sender = connect()
    publish(sender, "no", exchange=exchange, routing_key="weather")
    publish(sender, "yes", exchange=exchange, routing_key="sport")
    assert reader.read() == ["yes"]
    reader.messages[0].ack()
    reader.consumer.cancel()
    assert "mine" not in artemis.queues
    publish(sender, "late", exchange=exchange, routing_key="sport")
    assert [name for name in artemis.queues if not name.startswith("temp-queue.")] == ["DLQ", "ExpiryQueue"]


@pytest.mark.parametrize("is_read", [True, False])
def test_a_queue_whose_client_died_is_deleted_later(artemis: ArtemisBroker, connect: Connect, is_read: bool) -> None:
    connection = connect()
    queue = kombu.Queue("mine", kombu.Exchange("news", "fanout"), auto_delete=True, expires=60)
    queue(connection).declare()
    if is_read:
        Reader(connection, queue)
    artemis.drop_connections()
    publish(connect(), "goal", exchange="news")
    artemis.queue("mine").wait(count=1)
    artemis.clock.advance(seconds=50)
    assert "mine" in artemis.queues
    artemis.clock.advance(seconds=90)
    assert "mine" not in artemis.queues


def test_such_a_queue_has_one_exchange(connection: kombu.Connection) -> None:
    queue = kombu.Queue(
        "mine",
        bindings=[kombu.binding(kombu.Exchange(name, "direct"), "k") for name in ("one", "two")],
        auto_delete=True,
    )
    with pytest.raises(ChannelError, match=r"'mine' is bound to 'kombu\.\w+', and .* has one exchange only"):
        queue(connection).declare()


def test_a_binding_ends(artemis: ArtemisBroker, connect: Connect) -> None:
    exchange = kombu.Exchange("orders", "direct")
    queue = kombu.Queue("eu", exchange, routing_key="eu")
    connection = connect()
    bound = queue(connection)
    bound.declare()
    publish(connection, 1, exchange=exchange, routing_key="eu")
    bound.unbind_from(exchange, routing_key="eu")
    publish(connection, 2, exchange=exchange, routing_key="eu")
    assert artemis.queue("eu").count == 1
    bound.declare()
    exchange(connection).delete()
    publish(connection, 3, exchange=exchange, routing_key="eu")
    assert artemis.queue("eu").count == 1


def test_a_pattern_that_cannot_be_bound_is_refused(connection: kombu.Connection) -> None:
    queue = kombu.Queue("q", kombu.Exchange("orders", "topic"), routing_key="*.a.#")
    with pytest.raises(ChannelError, match=r"exchange 'orders', queue 'q': the pattern '\*\.a\.#' has both"):
        queue(connection).declare()


# ---- queues ------------------------------------------------------------------------------------------


def test_a_queue_is_counted_purged_and_deleted(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    queue = kombu.Queue("jobs", kombu.Exchange("jobs"), routing_key="jobs")(connection)
    for number in range(3):
        publish(connection, number, exchange=queue.exchange, routing_key="jobs", declare=[queue])
    assert queue.queue_declare(passive=True).message_count == 3
    assert queue.purge() == 3
    assert artemis.queue("jobs").count == 0
    publish(connection, 1, routing_key="jobs")
    queue.delete(if_empty=True)
    assert "jobs" in artemis.queues
    queue.delete()
    assert "jobs" not in artemis.queues
    publish(connection, 1, exchange=queue.exchange, routing_key="jobs")
    assert "jobs" not in artemis.queues  # its bindings have gone with it
    with pytest.raises(ChannelError, match="NOT_FOUND - no queue 'jobs'"):
        queue.queue_declare(passive=True)


def test_attributes_of_a_queue_are_those_of_the_broker(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    kombu.Queue("ring", max_length=2, max_priority=5)(connection).declare()
    kombu.Queue("rabbit", queue_arguments={"x-max-length": 1, "x-max-priority": 9})(connection).declare()
    kombu.Queue("leased", queue_arguments={"lease-period": "10m"})(connection).declare()
    for name in ("ring", "rabbit"):
        for number in range(3):
            publish(connection, number, routing_key=name)
    assert (artemis.queue("ring").count, artemis.queue("rabbit").count) == (2, 1)
    with pytest.raises(ChannelError, match="createQueue has no argument 'x-odd'"):
        kombu.Queue("odd", queue_arguments={"x-odd": 1})(connection).declare()
    with pytest.raises(ChannelError, match="use max_length"):
        kombu.Queue("odd", max_length_bytes=1)(connection).declare()


def test_a_lease_that_ends_lets_another_worker_have_the_message(artemis: ArtemisBroker, connect: Connect) -> None:
    queue = kombu.Queue("jobs", queue_arguments={"lease-period": "10m"})
    hangs = Reader(connect(), queue)
    publish(connect(), "job", routing_key="jobs")
    hangs.read()
    works = Reader(connect(), queue)
    artemis.clock.advance(minutes=11)
    assert works.read() == ["job"]
    assert works.messages[0].delivery_info["redelivered"]
    works.messages[0].ack()
    hangs.messages[0].ack()  # too late, which is no error
    artemis.queue("jobs").assert_acknowledged(1)
    assert not hangs.has_more()


# ---- messages ----------------------------------------------------------------------------------------


def test_ack_reject_and_requeue(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    reader = Reader(connection, kombu.Queue("jobs"))
    publish(connection, "job", routing_key="jobs")
    assert reader.read() == ["job"]
    assert not reader.messages[0].delivery_info["redelivered"]
    reader.messages[0].requeue()
    assert reader.read() == ["job"]
    assert reader.messages[0].delivery_info["redelivered"]
    reader.messages[0].ack()
    publish(connection, "odd", routing_key="jobs")
    reader.read()
    reader.messages[0].reject()
    artemis.queue("ExpiryQueue").wait(count=1)  # as what cannot be processed
    publish(connection, "again", routing_key="jobs")
    reader.read()
    reader.consumer.recover(requeue=True)
    assert reader.read() == ["again"]


def test_all_messages_up_to_one_are_acknowledged(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    reader = Reader(connection, kombu.Queue("jobs"))
    for number in range(3):
        publish(connection, number, routing_key="jobs")
    reader.read(3)
    reader.messages[1].ack(multiple=True)
    artemis.queue("jobs").assert_acknowledged(2)
    assert artemis.queue("jobs").state.delivering == 1


def test_a_message_is_got_without_a_consumer(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    queue = kombu.Queue("jobs")(connection)
    queue.declare()
    assert queue.get() is None
    for number in range(3):
        publish(connection, number, routing_key="jobs")
    first = queue.get()
    assert (first.payload, queue.get(no_ack=True).payload) == (0, 1)
    artemis.queue("jobs").wait(count=2)
    first.ack()
    artemis.queue("jobs").wait(count=1, delivering=0)
    assert queue.get().payload == 2


def test_a_consumer_has_as_many_as_it_may_and_that_can_change(
    artemis: ArtemisBroker, connection: kombu.Connection
) -> None:
    reader = Reader(connection, kombu.Queue("jobs"), prefetch=2)
    for number in range(6):
        publish(connection, number, routing_key="jobs")
    first = reader.read(2) and list(reader.messages)
    assert not reader.has_more()
    assert artemis.queue("jobs").state.delivering == 2
    reader.consumer.qos(prefetch_count=3)
    assert reader.read() == [2]
    reader.consumer.qos(prefetch_count=1)
    for message in [*first, *reader.messages]:
        assert not reader.has_more()
        message.ack()
    assert reader.read() == [3]


def test_several_queues_share_what_a_channel_may_have(connection: kombu.Connection) -> None:
    queues = [kombu.Queue("one"), kombu.Queue("two")]
    reader = Reader(connection, *queues, prefetch=1)
    for name in ("one", "two", "one", "two"):
        publish(connection, name, routing_key=name)
    got = []
    for _ in range(4):
        got += reader.read()
        assert not reader.has_more()
        reader.messages[0].ack()
    assert got == ["one", "two", "one", "two"]


def test_queues_take_turns(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    reader = Reader(connection, kombu.Queue("one"), kombu.Queue("two"))
    for name in ("one", "one", "one", "two"):
        publish(connection, name, routing_key=name)
    for name, count in (("one", 3), ("two", 1)):
        artemis.queue(name).wait(delivering=count)
    assert reader.read(2) == ["one", "two"]


def test_a_cancelled_consumer_still_has_its_messages(artemis: ArtemisBroker, connect: Connect) -> None:
    """As a worker that ends waits for its tasks; an UNSUBSCRIBE at once would give them to another one, too."""
    reader = Reader(connect(), kombu.Queue("jobs"), prefetch=2)
    sender = connect()
    publish(sender, 1, routing_key="jobs")
    publish(sender, 2, routing_key="jobs")
    reader.read(2)
    reader.consumer.cancel()
    publish(sender, 3, routing_key="jobs")
    other = Reader(connect(), kombu.Queue("jobs"))
    assert other.read() == [3]
    reader.messages[0].ack()
    publish(sender, 4, routing_key="jobs")
    publish(sender, 5, routing_key="jobs")
    assert other.read(2) == [4, 5]
    assert artemis.queue("jobs").consumers == 2
    reader.messages[1].ack()
    artemis.queue("jobs").wait(consumers=1)
    artemis.queue("jobs").assert_acknowledged(2)


def test_what_a_closed_channel_had_comes_back_without_a_failed_attempt(
    artemis: ArtemisBroker, connect: Connect
) -> None:
    connection = connect()
    reader = Reader(connection, kombu.Queue("jobs"))
    publish(connection, 1, routing_key="jobs")
    reader.read()
    connection.release()
    artemis.queue("jobs").wait(ready=1)
    assert artemis.queue("jobs").messages[0].attempts == 0
    with pytest.raises(LostError, match="is settled already, or came over"):
        reader.messages[0].ack()


def test_priorities(connection: kombu.Connection) -> None:
    queue = kombu.Queue("jobs")(connection)
    queue.declare()
    for priority in (3, 9, 0, 6, None, 99):
        publish(connection, priority, routing_key="jobs", priority=priority)
    assert Reader(connection, queue).read(6) == [9, 99, 6, 3, 0, None]


def test_a_property_that_cannot_be_written_is_left_out_if_amqp_does_not_have_it(connection: kombu.Connection) -> None:
    reader = Reader(connection, kombu.Queue("orders"))
    publish(connection, "order", routing_key="orders", correlation_id="c1", shop="north", sender=object())
    assert reader.read() == ["order"]
    properties = reader.messages[0].properties
    assert (properties["correlation_id"], properties["shop"]) == ("c1", "north")
    assert "sender" not in properties
    with pytest.raises(TypeError):
        publish(connection, "order", routing_key="orders", reply_to=object())


def test_a_message_expires(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    queue = kombu.Queue("jobs")(connection)
    queue.declare()
    kombu.Queue("short", message_ttl=5)(connection).declare()
    publish(connection, 1, routing_key="jobs", expiration=60)
    publish(connection, 1, routing_key="short")
    artemis.clock.advance(seconds=30)
    assert (artemis.queue("jobs").count, artemis.queue("short").count) == (1, 0)
    artemis.clock.advance(seconds=60)
    assert artemis.queue("jobs").count == 0


def test_a_task_with_a_date_waits_in_the_broker(artemis: ArtemisBroker, connect: Connect) -> None:
    kombu.Queue("jobs")(connect()).declare()
    for hours in (-1, 1):
        eta = (datetime.now(UTC) + timedelta(hours=hours)).isoformat()
        publish(connect(), hours, routing_key="jobs", headers={"eta": eta})
    assert artemis.queue("jobs").state.scheduled == 1
    publish(connect(transport_options={"schedule_eta": False}), 1, routing_key="jobs", headers={"eta": eta})
    assert artemis.queue("jobs").state.scheduled == 1
    reader = Reader(connect(), kombu.Queue("jobs"))
    assert reader.read(2) == [-1, 1]
    artemis.clock.advance(hours=1)
    assert reader.read() == [1]


def test_operators_can_choose_messages_by_task(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    kombu.Queue("jobs")(connection).declare()
    publish(connection, 1, routing_key="jobs", headers={"task": "shop.add"}, correlation_id="7", delivery_mode=1)
    artemis.queue("jobs").wait(count=1)
    [message] = artemis.queue("jobs").messages
    assert message.headers["task"] == "shop.add"
    assert message.headers["correlation-id"] == "7"
    assert not message.persistent


def test_messages_of_other_programs(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    reader = Reader(connection, kombu.Queue("jobs"), accept=["json", "application/data"])
    artemis.send("jobs", json.dumps({"a": 1}), {"content-type": "application/json;charset=utf-8"}, colour="red")
    artemis.send("jobs", b"\xff\0")
    assert reader.read(2) == [{"a": 1}, b"\xff\0"]
    assert reader.messages[0].headers["colour"] == "red"


# ---- connections -------------------------------------------------------------------------------------


@pytest.mark.artemis(persistence=True)
def test_nothing_is_lost_when_the_broker_loses_power(artemis: ArtemisBroker, connect: Connect) -> None:
    exchange = kombu.Exchange("orders", "topic")
    queue = kombu.Queue("jobs", exchange, routing_key="a.*")
    connection = connect()
    reader = Reader(connection, queue)
    publish(connection, 1, exchange=exchange, routing_key="a.b")
    reader.read()
    late = reader.messages[0]
    artemis.crash()
    with pytest.raises(LostError):
        connection.drain_events(timeout=5)
    assert not connection.connected
    artemis.restart()
    sender = kombu.Producer(connection)
    sender.publish(2, exchange=exchange, routing_key="a.b", retry=True)
    again = Reader(connection, queue)
    assert again.read(2) == [1, 2]
    with pytest.raises(LostError, match="is settled already, or came over"):
        late.ack()


def test_a_publisher_connects_again(artemis: ArtemisBroker, connection: kombu.Connection) -> None:
    queue = kombu.Queue("jobs")
    for number in range(2):
        publish(connection, number, routing_key="jobs", declare=[queue], retry=True)
        artemis.drop_connections()
        artemis.queue("jobs").wait(count=number + 1)


@pytest.mark.artemis(persistence=True)
def test_a_broker_that_does_not_confirm_is_given_up(artemis: ArtemisBroker, connect: Connect) -> None:
    kombu.Queue("jobs")(connect()).declare()  # for as long as it takes
    connection = connect(transport_options={"answer_s": 0.2})
    with artemis.disk_full(), pytest.raises(LostError, match=r"not confirmed SEND within 0\.2 s; .* may be full"):
        publish(connection, 1, routing_key="jobs", retry=False)


@pytest.mark.artemis(persistence=True)
def test_a_publisher_need_not_wait_for_the_disk(artemis: ArtemisBroker, connect: Connect) -> None:
    kombu.Queue("jobs")(connect()).declare()
    connection = connect(transport_options={"answer_s": 0.2, "confirm_publish": False})
    with artemis.disk_full():
        publish(connection, 1, routing_key="jobs", retry=False)
    artemis.queue("jobs").wait(count=1)
    assert artemis.queue("jobs").messages[0].persistent


def test_one_url_after_the_other(artemis: ArtemisBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = listener.getsockname()[1]
    urls = f"stomp://127.0.0.1:{nobody}//;stomp://{artemis.host}:{artemis.port}//"
    with kombu.Connection(urls) as connection:
        connection.ensure_connection(max_retries=2, interval_start=0)
        assert connection.port == artemis.port
        assert connection.connected


def test_heart_beats_are_those_of_the_connection(connect: Connect) -> None:
    connection = connect(heartbeat=30)
    connection.connect()
    assert (connection.supports_heartbeats, connection.get_heartbeat_interval()) == (True, 30)
    connection.heartbeat_check()
    quiet = connect()
    quiet.connect()
    assert quiet.get_heartbeat_interval() == 0


SECURED = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
   <security-enabled>true</security-enabled>
   <users-file>users.properties</users-file>
   <security-settings>
      <security-setting match="#">
         {permissions}
      </security-setting>
   </security-settings>
   <acceptors>
      <acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP{tls}</acceptor>
   </acceptors>
</core></configuration>
"""
RIGHTS = ("send", "consume", "createAddress", "createNonDurableQueue")
"""Beside ``manage``; docs/celery.md names them."""


def secured(folder: Path, *rights: str, tls: str = "") -> Path:
    """A broker.xml with the user worker, who has these rights."""
    (folder / "users.properties").write_text("worker = secret\n")
    (folder / "artemis-roles.properties").write_text("workers = worker\n")
    permissions = "".join(f'<permission type="{right}" roles="workers"/>' for right in rights)
    (folder / "broker.xml").write_text(SECURED.format(permissions=permissions, tls=tls))
    return folder / "broker.xml"


def test_a_user_with_the_rights_that_are_documented(tmp_path: Path) -> None:
    exchange = kombu.Exchange("orders", "topic")
    queues = [kombu.Queue("jobs", exchange, routing_key="k"), kombu.Queue("mine", exchange, "k", auto_delete=True)]
    with ArtemisBroker(secured(tmp_path, *RIGHTS, "manage")) as artemis:
        at = f"{artemis.host}:{artemis.port}//"
        with kombu.Connection(f"stomp://worker:secret@{at}") as connection:
            reader = Reader(connection, *queues)
            publish(connection, 1, exchange=exchange, routing_key="k")
            assert reader.read(2) == [1, 1]
            publish(connection, 2, routing_key="jobs")
            assert reader.read() == [2]
            assert queues[0](connection).purge() == 0
            queues[0](connection).delete()
            assert not reader.has_more()
        with kombu.Connection(f"stomp://worker:wrong@{at}") as connection, pytest.raises(ChannelError, match="refuses"):
            connection.connect()


def test_a_task_for_a_queue_that_somebody_deleted_is_kept_and_a_late_answer_is_not(tmp_path: Path) -> None:
    with ArtemisBroker(secured(tmp_path, *RIGHTS, "manage", "createDurableQueue")) as artemis:
        at = f"stomp://worker:secret@{artemis.host}:{artemis.port}//"
        with kombu.Connection(at) as sender, kombu.Connection(at) as other:
            for name, mode in (("jobs", 2), ("answers", 1)):
                kombu.Queue(name)(sender).declare()
                kombu.Queue(name)(other).delete()
                artemis.clock.advance(minutes=2)  # its address goes, too
                publish(sender, 1, routing_key=name, delivery_mode=mode)
            artemis.queue("jobs").wait(count=1)
            artemis.wait_until_idle()
            assert "answers" not in artemis.queues


def test_a_user_who_may_not_manage_reads_what_is_missing(tmp_path: Path) -> None:
    with (
        ArtemisBroker(secured(tmp_path, *RIGHTS)) as artemis,
        kombu.Connection(f"stomp://worker:secret@{artemis.host}:{artemis.port}//") as connection,
        pytest.raises(ChannelError, match=r"createQueue.*manage"),
    ):
        kombu.Queue("jobs")(connection).declare()


def test_tls(tmp_path: Path, certificate: Path) -> None:
    tls = f";sslEnabled=true;keyStorePath={certificate};keyStoreType=PEM"
    with ArtemisBroker(secured(tmp_path, *RIGHTS, "manage", tls=tls)) as artemis:
        at = f"worker:secret@{artemis.host}:{artemis.port}//"
        urls: list[tuple[str, dict[str, Any]]] = [
            (f"stomp+ssl://{at}?ssl_ca_certs={certificate}", {}),
            (f"stomp://{at}", {"ssl": {"ca_certs": str(certificate)}}),
            (f"stomp+ssl://{at}", {"ssl": {"cert_reqs": ssl.CERT_NONE}}),
            (f"stomp://127.0.0.1:1//;stomp+ssl://{at}?ssl_ca_certs={certificate}", {}),
        ]
        for number, (url, options) in enumerate(urls):
            with kombu.Connection(url, **options) as connection:
                connection.ensure_connection(max_retries=2, interval_start=0)
                publish(connection, "x" * 100_000, routing_key="jobs", declare=[kombu.Queue("jobs")])
                [text] = Reader(connection, kombu.Queue("jobs")).read()
                assert len(text) == 100_000, number
                assert "secret" not in connection.as_uri()
        with kombu.Connection(f"stomp+ssl://{at}") as connection, pytest.raises(LostError, match=r"(?i)certificate"):
            connection.connect()
        with kombu.Connection(f"stomp+ssl://{at}", ssl={"colour": 1}) as connection:  # noqa: SIM117
            with pytest.raises(ChannelError, match="no option colour"):
                connection.connect()


# ---- a broker that is no artemis_py ------------------------------------------------------------------


@pytest.fixture
def plain(connect: Connect) -> kombu.Connection:
    """A connection that asks for nothing that STOMP 1.2 has not, but for the prefix /queue/."""
    return connect(transport_options={"management": False})


def test_without_management_queues_and_bindings_of_this_process_work(
    artemis: ArtemisBroker, plain: kombu.Connection
) -> None:
    exchange = kombu.Exchange("orders", "topic")
    reader = Reader(plain, kombu.Queue("eu", exchange, routing_key="eu.*"), prefetch=1)
    publish(plain, 1, exchange=exchange, routing_key="eu.de")
    publish(plain, 2, exchange=exchange, routing_key="us.ny")
    publish(plain, 3, routing_key="eu", priority=7)
    assert reader.read() == [1]
    reader.messages[0].requeue()
    assert reader.read() == [3]
    reader.messages[0].reject()
    assert reader.read() == [1]
    reader.messages[0].ack()
    publish(plain, 4, routing_key="eu")
    artemis.queue("eu").wait(count=1)
    reader.consumer.cancel()
    assert kombu.Queue("eu")(plain).get(no_ack=True).payload == 4
    assert kombu.Queue("eu")(plain).get() is None


def test_without_management_the_rest_says_what_it_takes(plain: kombu.Connection) -> None:
    news = kombu.Exchange("news", "fanout")
    queue = kombu.Queue("q", news)(plain)
    queue.declare()
    for what in (lambda: publish(plain, 1, exchange=news), queue.purge, queue.delete):
        with pytest.raises(ChannelError, match="is no artemis_py, which it takes to"):
            what()
