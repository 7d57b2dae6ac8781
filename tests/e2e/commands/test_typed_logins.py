"""Who gives no login is asked for one at a terminal, and told which to give elsewhere."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.e2e.commands.user import User
from tests.kit.process import BrokerProcess, anycast, configuration, for_the_module, running

SECURED = """
<users-file>artemis-users.properties</users-file>
<security-settings><security-setting match="#">
  <permission type="send" roles="amq"/><permission type="createAddress" roles="amq"/>
  <permission type="createDurableQueue" roles="amq"/><permission type="view" roles="amq"/>
</security-setting></security-settings>"""
COMMANDS = (("send", "q", "hello"), ("queue", "ls"))
NO_USER = "no user given: --user or ARTEMIS_PY_USER"


TEXT = configuration(security=SECURED, addresses=anycast("q"))
USERS = {"artemis-users.properties": b"ann=secret\n", "artemis-roles.properties": b"amq=ann\n"}


secured = for_the_module(partial(running, TEXT, beside=USERS))


@pytest.fixture
def ann(secured: BrokerProcess, tmp_path: Path) -> User:
    return User(tmp_path, secured)


def place(user: User, words: tuple[str, ...]) -> str:
    """How errors of the command name the broker."""
    return (user.stomp_url if words[0] == "send" else user.url).partition("://")[2]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_at_a_terminal(ann: User, words: tuple[str, ...]) -> None:
    with ann.terminal(*words) as terminal:
        terminal.await_text(f"{place(ann, words)} requires a login")
        terminal.await_text("User: ")
        terminal.type("ann\n")
        terminal.await_text("Password: ")
        terminal.type("secret\n")
        assert terminal.await_end() == 0
        assert "secret" not in terminal.text
        assert ("sent 1 message" if words[0] == "send" else "ANYCAST") in terminal.text


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_who_types_no_password_gives_up(ann: User, words: tuple[str, ...]) -> None:
    with ann.terminal(*words) as terminal:
        terminal.await_text("User: ")
        terminal.type("ann\n")
        terminal.await_text("Password: ")
        terminal.type("\x04")
        assert terminal.await_end() == 1
        assert f"artemis-py: {place(ann, words)}: no password given" in terminal.text


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_wrong_password_is_refused(ann: User, words: tuple[str, ...]) -> None:
    with ann.terminal(*words) as terminal:
        terminal.await_text("User: ")
        terminal.type("ann\n")
        terminal.await_text("Password: ")
        terminal.type("guess\n")
        assert terminal.await_end() == 1
        assert f"artemis-py: {place(ann, words)}: " in terminal.text


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_without_a_terminal(ann: User, words: tuple[str, ...]) -> None:
    assert ann.refused(*words).startswith(f"artemis-py: {place(ann, words)}: {NO_USER}")
