"""URIs of acceptors, their parameters, and which ports are not opened."""

from __future__ import annotations

import pytest

from artemis_py.config.settings import AcceptorConfig
from artemis_py.config.tables.acceptor import PARAMS, is_loopback, known_params
from tests.kit.documents import acceptor, errors_of, load_core, warnings_of


def made(uri: str, more: str = "") -> AcceptorConfig:
    (only,) = load_core(acceptor(uri) + more).acceptors
    return only


def test_a_uri_taken_apart() -> None:
    found = made("\n tcp://127.0.0.1:61613?protocols=STOMP;\n  anycastPrefix=/queue/,q:; connectionTtl=5000 ")
    assert (found.name, found.host, found.port, found.protocols) == ("a", "127.0.0.1", 61613, ("STOMP",))
    assert found.list_param("anycastPrefix") == ("/queue/", "q:")
    assert found.int_param("connectionTtl") == 5000
    assert found.refused is None


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("a=1;anycastPrefix=x;anycastPrefix=y", "anycastPrefix", "y"),
        ("anycastPrefix=%2541", "anycastPrefix", "A"),
        ("anycastPrefix=a+b", "anycastPrefix", "a b"),
        ("anycastPrefix=a%2Bb", "anycastPrefix", "a b"),
        ("anycastPrefix=a%253Bb", "anycastPrefix", "a;b"),
        ("anycastPrefix=%3E;x=1", "anycastPrefix", ">"),
        ("anycast%50refix=x", "anycastPrefix", "x"),
        ("stompConsumerCredits=5", "stompConsumerWindowSize", "5"),
        ("stomp-enable-message-id=true", "stompEnableMessageId", "true"),
        ("handshake-timeout=3", "handshakeTimeout", "3000"),
        ("handshakeTimeout=7;handshake-timeout=3", "handshakeTimeout", "7"),
    ],
)
def test_parameters_are_decoded_twice_and_have_one_name(query: str, name: str, value: str) -> None:
    assert made(f"tcp://localhost:1?{query.replace('&', '&amp;')}").params[name] == value


@pytest.mark.parametrize(
    ("uri", "host", "port"),
    [
        ("tcp://localhost:0", "localhost", 0),
        ("tcp://[::1]:61613", "::1", 61613),
        ("tcp://localhost:1/path?x=1", "localhost", 1),
        ("(tcp://localhost:1,tcp://127.0.0.1:2)?protocols=STOMP", "localhost", 1),
        ("(tcp://localhost:1)", "localhost", 1),
    ],
)
def test_uris_that_are_accepted(uri: str, host: str, port: int) -> None:
    found = made(uri)
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("", "the URI is empty"),
        (" ", "the URI is empty"),
        ("nonsense", "not a URI"),
        ("localhost:1", "not a URI"),
        ("tcp://local^host:1", "not a URI"),
        ("tcp://localhost:1?a=%zz", "not a URI"),
        ("http://localhost:1", "unknown scheme"),
        ("tcp://:1", "host is missing"),
        ("tcp://localhost", "port is missing"),
        ("tcp://localhost:", "port is missing"),
        ("tcp://localhost:65536", "wrong port 65536"),
        ("tcp://localhost:-1", "wrong port -1"),
        ("tcp://localhost:x", "wrong port x"),
    ],
)
def test_uris_that_are_refused(uri: str, words: str) -> None:
    (problem,) = errors_of(acceptor(uri))
    assert words in problem.message
    assert problem.line == 3


def test_a_nameless_acceptor_is_named_by_its_port() -> None:
    (only,) = load_core("<acceptors><acceptor>tcp://localhost:1?protocols=STOMP</acceptor></acceptors>").acceptors
    assert only.name == "tcp://localhost:1"


def test_typed_parameters_and_their_defaults() -> None:
    found = made("tcp://localhost:1?maxHeaders=5;tcpNoDelay=false;heartBeatToConnectionTtlModifier=1.5")
    assert (found.int_param("maxHeaders"), found.int_param("maxHeaders", 9)) == (5, 5)
    assert (found.int_param("maxBodyBytes"), found.int_param("maxBodyBytes", 9)) == (104857600, 9)
    assert (found.bool_param("tcpNoDelay"), found.bool_param("autoStart")) == (False, True)
    assert found.float_param("heartBeatToConnectionTtlModifier") == 1.5
    assert found.list_param("multicastPrefix") == ()
    with pytest.raises(KeyError):
        found.int_param("maxHeader")


LIMITS = {
    "maxHeaderLineBytes": 16384,
    "maxHeaders": 512,
    "maxHeaderBytes": 65536,
    "maxBodyBytes": 104857600,
    "maxUnsentBytes": 67108864,
    "maxSelectorBytes": 8192,
    "maxSelectorTerms": 1000,
    "maxSubscriptions": 1024,
    "maxTransactions": 256,
    "maxTransactionBytes": 104857600,
    "maxTransactionOperations": 10_000,
    "maxTransactionPlaces": 250_000,
    "connectionsAllowed": -1,
    "handshakeTimeout": 10000,
    "stompConsumerWindowSize": 10240,
    "connectionTtlMin": 1000,
    "connectionTtlMax": 2**63 - 1,
}


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("backlog", "2147483648", "1 to 2147483647"),
        ("backlog", "0", "1 to 2147483647"),
        ("heartBeatToConnectionTtlModifier", "1e308", "0.001 to 1000"),
        ("heartBeatToConnectionTtlModifier", "1e-308", "0.001 to 1000"),
    ],
)
def test_what_the_system_or_a_client_could_not_be_told_is_refused(name: str, value: str, allowed: str) -> None:
    (problem,) = errors_of(acceptor(f"tcp://localhost:1?{name}={value}"))
    assert (problem.value, problem.allowed) == (value, allowed)
    assert name in problem.message


def test_limits_have_defaults_and_take_whole_numbers_only() -> None:
    for name, default in LIMITS.items():
        assert made("tcp://localhost:1").int_param(name) == default, name
        assert made(f"tcp://localhost:1?{name}=7").int_param(name) == 7, name
        for wrong in ("x", "", "10K", "1.5", "-2", "9223372036854775808"):
            (problem,) = errors_of(acceptor(f"tcp://localhost:1?{name}={wrong}"))
            assert f"parameter {name} has a wrong value" in problem.message


def test_the_table_names_each_parameter_once() -> None:
    names = [name for row in PARAMS for name in (row.name, *row.aliases)]
    assert sorted(set(names)) == sorted(names)
    assert len(known_params()) == len(names)


def test_an_unknown_parameter_is_a_warning_with_the_nearest_name() -> None:
    (warning,) = warnings_of(acceptor("tcp://localhost:1?maxheaders=5"))
    assert warning == "broker.xml:3: acceptor 'a': unknown parameter maxheaders is ignored; did you mean 'maxHeaders'?"


def test_a_word_that_is_no_boolean_counts_as_false() -> None:
    uri = "tcp://localhost:1?tcpNoDelay=456"
    assert made(uri).bool_param("tcpNoDelay") is False
    assert any("read as false" in warning for warning in warnings_of(acceptor(uri)))


def test_parameters_without_effect_are_named_once_unless_they_repeat_the_default() -> None:
    core = (
        '<acceptors><acceptor name="a">tcp://localhost:1?tcpSendBufferSize=1048576;useEpoll=true</acceptor>'
        '<acceptor name="b">tcp://localhost:2?tcpSendBufferSize=7</acceptor>'
        '<acceptor name="c">tcp://localhost:3?tcpSendBufferSize=8</acceptor></acceptors>'
    )
    assert [each for each in warnings_of(core) if "tune" in each] == [
        (
            "broker.xml:3: 1 setting tunes the internals of Artemis and has no effect here: "
            "acceptor parameter tcpSendBufferSize (3)"
        )
    ]


@pytest.mark.parametrize(
    ("query", "protocols"),
    [
        ("", ("STOMP",)),
        ("?protocols=STOMP", ("STOMP",)),
        ("?protocols=HTTP", ("HTTP",)),
        ("?protocols=CORE,STOMP,AMQP,HTTP,STOMP", ("STOMP", "HTTP")),
        ("?protocols=stomp", ("STOMP",)),
        ("?protocol=STOMP", ("STOMP",)),
        ("?protocols=AMQP,MQTT", ()),
        ("?protocols=STMP", ()),
    ],
)
def test_protocols(query: str, protocols: tuple[str, ...]) -> None:
    found = made(f"tcp://localhost:1{query}")
    assert found.protocols == protocols
    assert (found.refused is None) is bool(protocols)


def test_protocols_that_are_not_spoken_are_named_once() -> None:
    core = (
        '<acceptors><acceptor name="a">tcp://localhost:1?protocols=CORE,AMQP,STOMP</acceptor>'
        '<acceptor name="b">tcp://localhost:2?protocols=MQTT,AMQP,STOMP</acceptor></acceptors>'
    )
    assert warnings_of(core) == ["broker.xml:3: unsupported protocols are ignored: CORE, AMQP, MQTT"]
    assert "did you mean 'STOMP'?" in warnings_of(acceptor("tcp://localhost:1?protocols=STMP,HTTP"))[0]
    assert any("is read as STOMP" in each for each in warnings_of(acceptor("tcp://localhost:1?protocols=stomp")))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "broker.example", "localhost.example", "fe80::1"]
)
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("security", "refused"),
    [
        ("", True),
        ("<security-enabled>true</security-enabled>", True),
        ("<security-enabled>false</security-enabled>", False),
        ("<security-enabled>1</security-enabled>", True),
        ("<security-enabled/>", True),
    ],
)
def test_a_port_that_others_can_reach_needs_security_switched_off(security: str, refused: bool) -> None:
    found = made("tcp://0.0.0.0:61613?protocols=STOMP", security)
    assert (found.refused is not None) is refused
    if refused:
        assert "<security-enabled>false</security-enabled>" in str(found.refused)
        assert any("'a' is not opened: 0.0.0.0" in each for each in warnings_of(acceptor("tcp://0.0.0.0:61613")))


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("vm://0", "Java virtual machine"),
        ("tcp://localhost:1?protocols=AMQP", "it speaks STOMP and HTTP"),
    ],
)
def test_ports_that_are_not_opened(uri: str, words: str) -> None:
    assert words in str(made(uri).refused)
    assert any("not opened: " in warning for warning in warnings_of(acceptor(uri)))


def test_load_balancers_are_addresses_or_networks() -> None:
    assert made("tcp://localhost:1?proxyEnabled=true;proxyNetworks=10.0.0.7, 2001:db8::/64").refused is None
    found = errors_of(acceptor("tcp://localhost:1?proxyProtocolEnabled=true;proxyNetworks=10.0.0.7/8"))
    assert "proxyNetworks has a wrong value: 10.0.0.7/8 has host bits set" in str(found[0])
    (warning,) = warnings_of(acceptor("tcp://localhost:1?proxyNetworks=10.0.0.7"))
    assert "proxyNetworks counts only with proxyProtocolEnabled=true" in warning


@pytest.mark.parametrize("name", ["allowedOrigins", "consoleBrokers"])
def test_origins_of_http_are_spelled_out(name: str) -> None:
    """With a wildcard any page in the world could use the API."""
    given = "https://Ops.example,http://10.0.0.7:8161,http://[::1]:8161"
    assert made(f"tcp://localhost:1?protocols=HTTP;{name}={given}").list_param(name) == tuple(given.split(","))
    for word in ("*", "http://*", "https://*.example", "ops.example", "null", "http://a/", "http://a:1/ui", "ftp://a",
                 "http://u@a", "http://a:b", "http://"):  # fmt: skip
        (found,) = errors_of(acceptor(f"tcp://localhost:1?protocols=HTTP;{name}=http://a:1,{word}"))
        assert f"parameter {name} has a wrong value" in str(found)
        assert repr(word) in str(found) or word in str(found)
    assert made(f"tcp://localhost:1?protocols=STOMP;{name}=*").refused is None, "WebSocket has another rule"


def test_tls_switched_off_opens_the_port() -> None:
    assert made("tcp://localhost:1?sslEnabled=false;keyStorePath=x").refused is None


def test_two_acceptors_of_one_name_or_port_are_refused() -> None:
    two = '<acceptors><acceptor name="a">{}</acceptor>\n<acceptor name="{}">{}</acceptor></acceptors>'
    (problem,) = errors_of(two.format("tcp://localhost:1", "a", "tcp://localhost:2"))
    assert "two acceptors are named 'a'" in problem.message
    (problem,) = errors_of(two.format("tcp://localhost:1", "b", "tcp://localhost:1"))
    assert "the acceptor at broker.xml:3 already uses" in problem.message
    assert errors_of(two.format("tcp://localhost:0", "b", "tcp://localhost:0")) == []
    assert errors_of(two.format("tcp://localhost:1?protocols=AMQP", "b", "tcp://localhost:1")) == []


@pytest.mark.parametrize("text", ["a:b", "a%0Ab", "a%0Db", "%C3%A9", "", "x" * 201])
def test_a_server_header_that_no_frame_can_have(text: str) -> None:
    (problem,) = errors_of(acceptor(f"tcp://127.0.0.1:1?stompServerHeader={text}"))
    assert "parameter stompServerHeader has a wrong value" in problem.message


def test_a_server_header() -> None:
    assert made("tcp://127.0.0.1:1?stompServerHeader=ActiveMQ/6%20(x)").params["stompServerHeader"] == "ActiveMQ/6 (x)"
