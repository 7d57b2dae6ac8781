"""Commands that destroy something ask first."""

from __future__ import annotations

import re

import pytest

from artemis_py.cli.main import main
from artemis_py.management.table import OPERATIONS
from tests.e2e.commands.user import User
from tests.kit.client import StompSocket

pytestmark = pytest.mark.e2e


def test_a_person_is_asked(user: User) -> None:
    user.printed("send", "orders", "x", "--count", "1200")
    with user.terminal("queue", "purge", "orders") as terminal:
        terminal.await_text("This destroys 1,200 messages of queue orders. Go on? [y/N] ")
        terminal.type("n\n")
        terminal.await_text("nothing was changed")
        assert terminal.await_end() == 1
    assert user.broker is not None
    user.broker.await_count("orders", 1200)
    with user.terminal("queue", "purge", "orders") as terminal:
        terminal.await_text("[y/N] ")
        terminal.type("y\n")
        terminal.await_text("1,200")
        assert terminal.await_end() == 0
    user.broker.await_count("orders", 0)


def test_yes_answers(user: User) -> None:
    user.printed("send", "orders", "x")
    assert user.printed("queue", "purge", "orders", "-y").split() == ["removed", "1", "inDelivery", "0"]


def test_where_nobody_can_be_asked(user: User) -> None:
    """A script says that it means it."""
    user.printed("send", "orders", "x")
    said = user.refused("queue", "purge", "orders")
    assert said == "artemis-py: this destroys 1 message of queue orders, and nobody is here to ask: add --yes\n"
    assert user.broker is not None
    user.broker.await_count("orders", 1)


def test_what_does_not_exist_is_not_asked_about(user: User) -> None:
    assert "there is no queue 'order'; did you mean orders?" in user.refused("queue", "purge", "order")


QUESTIONS = [
    (["address", "purge", "orders"], "3 messages of address orders"),
    (["address", "delete", "orders", "--force"], "address orders with 3 messages, and the connections of 0 consumers"),
    (["queue", "remove", "orders", "region = 'eu'"], "2 messages of queue orders"),
    (
        ["queue", "expire", "orders", "region = 'us'"],
        "1 message of queue orders, but for copies at its expiry address",
    ),
    (["message", "remove", "orders", "7"], "message 7 of queue orders"),
    (
        ["connection", "close-address", "127.0.0.1"],
        "all connections from 127.0.0.1, and transactions that are open on them",
    ),
]


def test_a_question_says_how_much_it_is(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that match, or those of all queues of an address."""
    stomp, http = ["--stomp", user.stomp_url], ["--url", user.url]
    assert main(["send", "orders", "x", "--count", "2", "--header", "region=eu", *stomp]) == 0
    assert main(["send", "orders", "x", "--header", "region=us", *stomp]) == 0
    for words, what in QUESTIONS:
        capsys.readouterr()
        assert main([*words, *http]) == 1
        said = capsys.readouterr().err
        assert said == f"artemis-py: this destroys {what}, and nobody is here to ask: add --yes\n"
    assert user.broker is not None
    user.broker.await_count("orders", 3)
    assert main(["address", "purge", "order", *http]) == 1
    assert "there is no address 'order'" in capsys.readouterr().err


def test_whatever_destroys_messages_or_ends_connections_asks() -> None:
    """Each operation whose HTTP method or name says so. A bridge that is stopped loses nothing."""
    told = re.compile("remove|expire|destroy|delete|purge|close|rollback|stop")
    meant = [one for one in OPERATIONS if (one.method == "DELETE" or told.match(one.name)) and one.id != "bridge.stop"]
    assert len(meant) > 15
    assert [one.id for one in meant if not one.destroys] == []


def test_names_in_a_question_are_arguments() -> None:
    for operation in OPERATIONS:
        names = {argument.name: "" for argument in operation.arguments}
        assert operation.destroys.format(messages="", **names) is not None


def test_a_question_names_the_consumers_that_lose_their_connections(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only if the operation would close them."""
    assert user.broker is not None
    with StompSocket(user.broker.port) as client:
        client.connect()
        client.subscribe("jobs")
        for words, what in (
            (["queue", "delete", "jobs"], "queue jobs with 0 messages"),
            (
                ["queue", "delete", "jobs", "--remove-consumers"],
                "queue jobs with 0 messages, and the connections of 1 consumer",
            ),
            (
                ["address", "delete", "jobs", "--force"],
                "address jobs with 0 messages, and the connections of 1 consumer",
            ),
        ):
            assert main([*words, "--url", user.url]) == 1
            said = capsys.readouterr().err
            assert said == f"artemis-py: this destroys {what}, and nobody is here to ask: add --yes\n"


def test_a_new_password_is_asked_for_twice(user: User) -> None:
    """Where nobody can be asked, it comes from a file or the environment; without another change it is needed."""
    with user.terminal("user", "create", "zoe", "--role", "amq") as terminal:
        terminal.await_text("new password of zoe: ")
        terminal.type("open sesame\n")
        terminal.await_text("once more: ")
        terminal.type("open sesame\n")
        terminal.await_text("needsRestart")
        assert terminal.await_end() == 0
        assert "sesame" not in terminal.text
    assert "use --new-password-file, or set ARTEMIS_PY_NEW_PASSWORD" in user.refused("user", "update", "zoe")
    (user.folder / "new").write_text("another\n")
    printed = user.printed("user", "update", "zoe", "--new-password-file", "new")
    assert "passwordChanged  yes" in printed
    assert "another" not in printed
    printed = user.printed("user", "update", "zoe", "--role", "view")
    assert ("passwordChanged  no" in printed, "rolesChanged     yes" in printed) == (True, True)
    assert "this destroys the login of zoe" in user.refused("user", "delete", "zoe")
    assert "removed" in user.printed("user", "delete", "zoe", "--yes")
