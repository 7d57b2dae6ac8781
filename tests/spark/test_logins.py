"""The source and the sink at a broker where users log in, with TLS and without: who comes in, and what others read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.sql.types as t
import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark.consume.reader import QueueStreamReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import opened
from artemis_py.spark.write.options import sink_options
from artemis_py.spark.write.send_frames import send_plan
from artemis_py.spark.write.sink import Published, publish
from tests.kit.certificates import PASSWORD, Authority
from tests.kit.process import BrokerProcess
from tests.kit.secured import USERS, secured_broker
from tests.kit.tls import uri

SCHEMA = t.StructType([t.StructField("value", t.StringType())])
FAST_S = 20.0
"""A refusal comes long before the broker would be given up (60 s)."""


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("secured")
    stores: dict[str, Any] = {
        "keyStorePath": authority.issue("broker").pkcs12(folder / "broker.p12"),
        "keyStorePassword": PASSWORD,
    }
    trust = {"needClientAuth": "true", "trustStorePath": authority.pem(folder / "clients.pem")}
    elsewhere = stores | {"keyStorePath": authority.issue("x", hosts=("elsewhere",)).pkcs12(folder / "other.p12")}
    acceptors = {
        "stomps": uri("STOMP", **stores),
        "https": uri("HTTP", **stores),
        "elsewhere": uri("HTTP", **elsewhere),
        "mutual": uri("HTTP", **stores, **trust),
    }
    with secured_broker(folder, **acceptors) as one:
        yield one
        assert not any(secret in one.said for secret in USERS.values())


@pytest.fixture
def ca(authority: Authority, tmp_path: Path) -> str:
    return str(authority.pem(tmp_path / "ca.pem"))


def listed(url: str, **options: str) -> str:
    """The broker's name, as its log tells it."""
    [name] = opened(read_options({"url": url, **options}))
    return name


def sent(url: str, **options: str) -> Published:
    plan = send_plan(SCHEMA, sink_options({"url": url, "address": "a", **options}))
    return publish([pa.record_batch({"value": ["x"] * 50})], plan, f"id:{time.monotonic_ns()}")


def url_of(broker: BrokerProcess, acceptor: str) -> str:
    scheme = {"stomp": "tcp", "stomps": "stomps", "http": "http"}.get(acceptor, "https")
    return f"{scheme}://localhost:{broker.ports[acceptor]}"


def test_each_way_to_say_who_one_is(
    broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ca: str
) -> None:
    (tmp_path / "secret").write_text(USERS["ann"] + "\n")
    for login in ({"password": USERS["ann"]}, {"passwordFile": str(tmp_path / "secret")}):
        assert listed(url_of(broker, "http"), user="ann", **login) == "secured"
        assert sent(url_of(broker, "stomp"), user="ann", **login).rows == 50
        assert listed(url_of(broker, "https"), user="ann", caFile=ca, **login) == "secured"
        assert sent(url_of(broker, "stomps"), user="ann", caFile=ca, **login).rows == 50
    monkeypatch.setenv("ARTEMIS_PY_PASSWORD", USERS["bob"])
    monkeypatch.setenv("ARTEMIS_PY_USER", "bob")
    assert listed(url_of(broker, "http")) == "secured"
    assert sent(url_of(broker, "stomp")).rows == 50


def test_large_transactions_over_tls_arrive_whole(broker: BrokerProcess, ca: str) -> None:
    """More than the socket takes at once, in both directions."""
    rows = [str(number) * 500 for number in range(1000, 4000)]
    options = {"user": "ann", "password": USERS["ann"], "caFile": ca, "rowsPerTransaction": "700", "address": "large"}
    plan = send_plan(SCHEMA, sink_options({"url": url_of(broker, "stomps"), **options}))
    assert publish([pa.record_batch({"value": rows})], plan, "large").transactions == 5
    again = publish([pa.record_batch({"value": rows})], plan, "large")
    assert (again.rows, again.duplicates) == (3000, 5)
    reading = {name: options[name] for name in ("user", "password", "caFile")}
    [(_, log)] = opened(read_options({"url": url_of(broker, "https"), **reading})).values()
    content = b"".join(log.read(one.number, 0, one.size_bytes) for one in log.listing().segments)
    assert all(row.encode() in content for row in rows)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"user": "ann", "password": "wr0ng"}, "refuses user 'ann' of options user, password"),
        ({"user": "zoe", "password": "wr0ng"}, "refuses user 'zoe' of options user, password"),
        ({"token": "wr0ng"}, "refuses the given token of options token, tokenFile"),
        ({}, "the broker wants a login; give options user and passwordFile"),
        ({"user": "eve", "password": USERS["eve"]}, "user 'eve': AMQ229032: User: eve does not have permission='VIEW'"),
    ],
)  # fmt: skip
def test_a_source_that_may_not_read_says_so_at_once(broker: BrokerProcess, options: dict[str, str], words: str) -> None:
    started = time.monotonic()
    with pytest.raises(PipelineError, match=words) as refused:
        listed(url_of(broker, "http"), **options)
    assert time.monotonic() - started < FAST_S
    assert "wr0ng" not in str(refused.value)


@contextmanager
def consuming(broker: BrokerProcess, queue: str, **options: str) -> Iterator[QueueStreamReader]:
    """A stream that consumes a queue, over TLS at both ports."""
    urls = {"url": url_of(broker, "https"), "stompUrl": url_of(broker, "stomps")}
    stream = QueueStreamReader(read_options({**urls, "queue": queue, **options}, streaming=True))
    try:
        yield stream
    finally:
        stream.stop()


def test_a_stream_that_consumes_logs_in_at_both_ports(broker: BrokerProcess, ca: str) -> None:
    login = {"user": "bob", "password": USERS["bob"], "caFile": ca}
    sent(url_of(broker, "stomps"), address="jobs", routingType="ANYCAST", **login)
    with consuming(broker, "jobs", **login) as stream:
        start = stream.initialOffset()
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        rows = [rows.num_rows for share in stream.partitions(start, end) for rows in stream.read(share)]
        assert sum(rows) == 50
        assert stream.latestOffset(end, stream.getDefaultReadLimit()) == end
        assert stream.reportLatestOffset()["#lag"] == {"secured": {"messages": 0}}


@pytest.mark.parametrize(
    ("queue", "user", "words"),
    [
        ("locked", "bob", "queue locked: the broker refuses: .*User: bob does not have permission='CONSUME'"),
        ("jobs", "eve", "user 'eve': AMQ229032: User: eve does not have permission='VIEW'"),
    ],
)
def test_a_stream_that_may_not_consume_says_so_at_once(
    broker: BrokerProcess, ca: str, queue: str, user: str, words: str
) -> None:
    options = {"user": user, "password": USERS[user], "caFile": ca}
    started = time.monotonic()
    with consuming(broker, queue, **options) as stream, pytest.raises(PipelineError, match=words):
        stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    assert time.monotonic() - started < FAST_S


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"user": "ann", "password": "wr0ng"}, r"refuses the connection to user 'ann' of .*\[ann\] or password is"),
        ({"token": "wr0ng"}, "refuses the connection to the given token of options token"),
        ({}, "options user and passwordFile, or tokenFile, say who connects"),
    ],
)  # fmt: skip
def test_a_sink_that_may_not_connect_says_so_at_once(
    broker: BrokerProcess, options: dict[str, str], words: str
) -> None:
    started = time.monotonic()
    with pytest.raises(PipelineError, match=words) as refused:
        sent(url_of(broker, "stomp"), **options)
    assert time.monotonic() - started < FAST_S
    assert "wr0ng" not in str(refused.value)


def test_a_certificate_that_is_not_trusted_ends_it_at_once(broker: BrokerProcess, tmp_path: Path, ca: str) -> None:
    other = str(Authority("Others").pem(tmp_path / "other.pem"))
    login = {"user": "ann", "password": USERS["ann"]}
    started = time.monotonic()
    for caught in ({}, {"caFile": other}):
        with pytest.raises(PipelineError, match=r"certificate is not accepted.*option caFile"):
            listed(url_of(broker, "https"), **login, **caught)
        with pytest.raises(PipelineError, match=r"certificate is not accepted.*option caFile"):
            sent(url_of(broker, "stomps"), **login, **caught)
    assert time.monotonic() - started < FAST_S
    with pytest.raises(PipelineError, match=r"certificate is not accepted: Hostname mismatch"):
        listed(url_of(broker, "elsewhere"), caFile=ca, **login)
    assert listed(url_of(broker, "https"), verify="false", **login) == "secured"
    assert sent(url_of(broker, "stomps"), verify="false", **login).rows == 50


def test_a_port_without_tls_is_no_port_with_tls(broker: BrokerProcess, ca: str) -> None:
    login = {"user": "ann", "password": USERS["ann"], "caFile": ca}
    with pytest.raises(PipelineError, match="no TLS connection"):
        listed(f"https://localhost:{broker.ports['http']}", **login)
    with pytest.raises(PipelineError, match="no TLS connection"):
        sent(f"stomps://localhost:{broker.port}", **login)


def test_a_client_shows_its_certificate(broker: BrokerProcess, tmp_path: Path, authority: Authority, ca: str) -> None:
    issued = authority.issue("reader")
    both = issued.pem(tmp_path / "both.pem")
    (tmp_path / "key.pem").write_bytes(issued.key_pem())
    (tmp_path / "chain.pem").write_bytes(issued.chain_pem())
    url, login = url_of(broker, "mutual"), {"user": "ann", "password": USERS["ann"], "caFile": ca}
    assert listed(url, certificateFile=str(both), **login) == "secured"
    apart = {"certificateFile": str(tmp_path / "chain.pem"), "keyFile": str(tmp_path / "key.pem")}
    assert listed(url, **apart, **login) == "secured"
    with pytest.raises(PipelineError, match=r"refuses the client's certificate.*option certificateFile"):
        listed(url, **login)
    with pytest.raises(PipelineError, match="are not a certificate with its key"):
        listed(url, certificateFile=str(tmp_path / "chain.pem"), **login)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(issued.key_pem("secret") + issued.chain_pem())
    with pytest.raises(PipelineError, match="without a password"):
        listed(url, certificateFile=str(locked), **login)
