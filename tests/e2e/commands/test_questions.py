"""Commands that destroy something ask first."""

from __future__ import annotations

import pytest

from artemis_py.management.table import OPERATIONS
from tests.e2e.commands.user import User

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
    assert user.printed("queue", "purge", "orders", "-y").split() == ["removed", "1"]


def test_where_nobody_can_be_asked(user: User) -> None:
    """A script says that it means it."""
    user.printed("send", "orders", "x")
    said = user.refused("queue", "purge", "orders")
    assert said == "artemis-py: this destroys 1 message of queue orders, and nobody is here to ask: add --yes\n"
    assert user.broker is not None
    user.broker.await_count("orders", 1)


def test_what_does_not_exist_is_not_asked_about(user: User) -> None:
    assert "there is no queue 'order'; did you mean orders?" in user.refused("queue", "purge", "order")


def test_whatever_removes_something_asks() -> None:
    """Each operation whose HTTP method says so."""
    silent = [one.id for one in OPERATIONS if one.method == "DELETE" and not one.destroys]
    assert silent == []


def test_names_in_a_question_are_arguments() -> None:
    for operation in OPERATIONS:
        names = {argument.name: "" for argument in operation.arguments}
        assert operation.destroys.format(messages="", **names) is not None
