"""Commands that send, receive and browse messages."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys

import pytest

from tests.e2e.commands.user import User
from tests.kit.certificates import PASSWORD, Authority
from tests.kit.process import LOOPBACK, WAIT_S
from tests.kit.secured import USERS, secured_broker
from tests.kit.tls import uri

pytestmark = pytest.mark.e2e


def objects(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_message_there_and_back(user: User) -> None:
    said = user.printed(
        "send", "orders", "hello", "--header", "colour=red=ish", "--header", "a:b=c", "--priority", "7",
        "--content-type", "text/plain",
    )  # fmt: skip
    assert said == "sent 1 message to orders: it is on queue orders\n"
    for command in ("browse", "receive"):
        lines = user.printed(command, "orders").splitlines()
        assert lines[0].startswith("message ")
        assert lines[0].endswith("  orders  priority 7  persistent")
        assert sorted(lines[1:-1]) == ["  a:b: c", "  colour: red=ish", "  content-type: text/plain"]
        assert lines[-1] == "hello"
    assert user.printed("browse", "orders", "--timeout", "0.2") == ""


def test_bodies_as_they_are(user: User) -> None:
    """From an argument, standard input, a file, and line by line."""
    body = bytes(range(256))
    (user.folder / "body").write_bytes(body)
    user.printed("send", "orders", "--file", "body")
    user.printed("send", "orders", "-", typed=body)
    user.printed("send", "orders", typed="grün\n".encode())
    user.printed("send", "orders", "--lines", typed=b"1\n2\n")
    found = objects(user.printed("browse", "orders", "--json"))
    assert [one.get("body") for one in found] == [None, None, "grün\n", "1", "2"]
    assert [base64.b64decode(str(one["bodyBase64"])) for one in found[:2]] == [body, body]
    done = user.run("receive", "orders", "--body-only", "--count", "2")
    assert done.stdout == body + b"\n" + body + b"\n"
    lines = user.printed("browse", "orders").splitlines()
    assert "grün" in lines


def test_a_body_is_no_order_to_a_terminal(user: User) -> None:
    user.printed("send", "orders", "\x1b[31mred\a")
    assert "\\x1b[31mred\\x07" in user.printed("browse", "orders")
    assert "\x1b" not in user.printed("receive", "orders", "--json")


def test_many_messages(user: User) -> None:
    assert objects(user.printed("send", "orders", "x", "--count", "1234", "--json"))[0]["sent"] == 1234
    found = objects(user.printed("receive", "orders", "--count", "3", "--json"))
    assert len({str(one["messageID"]) for one in found}) == 3
    assert len(objects(user.printed("browse", "orders", "--json"))) == 1231


def test_when_a_message_is_acknowledged(user: User) -> None:
    for number in range(3):
        user.printed("send", "orders", str(number))
    assert user.printed("receive", "orders", "--ack", "none", "--count", "2", "--body-only") == "0\n1\n"
    redelivered = objects(user.printed("browse", "orders", "--json"))
    assert [dict(one["headers"])["redelivered"] for one in redelivered] == ["true", "true", "false"]  # type: ignore[call-overload]
    assert user.printed("receive", "orders", "--body-only") == "0\n"
    assert user.printed("receive", "orders", "--ack", "received", "--body-only") == "1\n"
    assert user.printed("receive", "orders", "--selector", "priority = '4'", "--body-only") == "2\n"


@pytest.mark.parametrize("words", [("browse", "ordres"), ("queue", "browse", "ordres"), ("queue", "count", "ordres")])
def test_a_mistyped_queue_is_named_and_not_created(user: User, words: tuple[str, ...]) -> None:
    said = user.refused(*words)
    assert "here is no queue" in said
    assert "did you mean orders?" in said
    assert "ordres" not in user.printed("queue", "ls")


def test_fewer_came_in_time(user: User) -> None:
    user.printed("send", "orders", "one")
    done = user.run("receive", "orders", "--count", "2", "--timeout", "0.3", "--body-only")
    assert (done.returncode, done.stdout) == (1, b"one\n")
    assert done.stderr == b"1 message came, and no further one within 0.3 s\n"


def test_ctrl_c_ends_it_and_loses_nothing(user: User) -> None:
    user.printed("send", "orders", "one")
    command = [sys.executable, "-m", "artemis_py", "receive", "orders", "--count", "0", "--body-only", "--timeout", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=user.environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        assert user.broker is not None
        user.broker.await_count("orders", 0)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b"artemis-py: interrupted\n"


def test_a_delay_and_an_end(user: User) -> None:
    user.printed("send", "orders", "later", "--delay", "3")
    assert user.printed("browse", "orders", "--timeout", "0.1") == ""
    assert user.printed("receive", "orders", "--body-only") == "later\n"
    user.printed("send", "orders", "gone", "--ttl", "0.01")
    assert user.printed("browse", "orders", "--timeout", "0.1") == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("send", "orders", "x", "--file", "body"), 2, "give BODY or --file, not both"),
        (("send", "orders", "--file", "none"), 1, "--file none: No such file or directory"),
        (("send", "orders", "x", "--header", "no"), 2, "a header is NAME=VALUE, and 'no' is not"),
        (("send", "orders", "x", "--header", "receipt=1"), 2, "receipt is set by this command"),
        (("send", "orders", "x", "--count", "0"), 2, "a count must be 1 or more"),
        (("send", "orders", "x", "--stomp", "http://x"), 2, "http://x is not the URL of a STOMP acceptor"),
        (("send", "orders", "x", "--stomp", "stomp://127.0.0.1:1"), 1, "nothing listens there"),
        (("send", "orders", "x", "--stomp", "stomp://u:p@h"), 1, "a URL must not contain a password"),
        (("receive", "orders", "--selector", "=", "--timeout", "1"), 1, "selector"),
        (("receive", "none::such", "--timeout", "-1"), 2, "a number of seconds, 0 or more"),
    ],
)
def test_what_is_refused(user: User, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in user.refused(*words, code=code)


def test_nobody_types_a_body(user: User) -> None:
    with user.terminal("send", "orders") as terminal:
        terminal.await_text("what should be sent? Give BODY")
        assert terminal.await_end() == 2


def test_logins_and_tls(alone: User) -> None:
    authority = Authority()
    store = authority.issue("broker").pem(alone.folder / "broker.pem", PASSWORD)
    trusted = authority.pem(alone.folder / "trusted.pem")
    password = alone.folder / "password"
    password.write_text(USERS["eve"])
    password.chmod(0o600)
    with secured_broker(alone.folder, stomps=uri("STOMP", keyStorePath=store, keyStorePassword=PASSWORD)) as broker:
        plain = f"stomp://{LOOPBACK}:{broker.ports['stomp']}"
        tls = f"stomp+ssl://localhost:{broker.ports['stomps']}"
        login = ("--user", "eve", "--password-file", str(password))
        trust = ("--ca-file", str(trusted))
        sent = alone.printed("send", "jobs", "x", "--stomp", plain, *login)
        assert sent == "sent 1 message to jobs: it is on queue jobs\n"
        assert alone.printed("receive", "jobs", "--body-only", "--stomp", tls, *login, *trust) == "x\n"
        no_user = "no user given: --user or ARTEMIS_PY_USER, with --password-file or ARTEMIS_PY_PASSWORD"
        assert f"127.0.0.1:{broker.ports['stomp']}: {no_user}" in alone.refused("send", "jobs", "x", "--stomp", plain)
        assert no_user in alone.refused("queue", "ls", "--url", f"http://{LOOPBACK}:{broker.ports['http']}")
        with alone.terminal("send", "jobs", "x", "--stomp", plain) as terminal:
            terminal.await_text("requires a login\nUser: ")
            terminal.type("eve\n")
            terminal.await_text("Password: ")
            terminal.type(f"{USERS['eve']}\n")
            terminal.await_text("sent 1 message to jobs: it is on queue jobs")
            assert terminal.await_end() == 0
            assert USERS["eve"] not in terminal.text
        assert "permission='CONSUME'" in alone.refused("receive", "locked", "--stomp", plain, *login)
        assert "certificate is not accepted" in alone.refused("send", "jobs", "x", "--stomp", tls, *login)
