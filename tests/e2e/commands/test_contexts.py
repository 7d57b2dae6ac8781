"""Brokers by name."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.e2e.commands.user import User
from tests.kit.process import LOOPBACK
from tests.kit.secured import USERS, secured_broker

pytestmark = pytest.mark.e2e


FILE = Path("config", "artemis-py", "contexts.toml")
"""Below the folder of a user."""


def test_contexts_are_kept(alone: User) -> None:
    assert alone.printed("context", "ls").startswith("no context; add one:")
    said = alone.printed("context", "add", "prod", "--url", "https://b:1", "--user", "ann")
    assert said == "added prod, which commands ask from now on\n"
    assert alone.printed("context", "add", "test.2", "--stomp-url", "stomp://h:2") == "added test.2\n"
    assert [line.split() for line in alone.printed("context", "ls").splitlines()] == [
        ["name", "url", "stomp-url", "user"],
        ["*", "prod", "https://b:1", "ann"],
        ["test.2", "stomp://h:2"],
    ]
    alone.printed("context", "use", "test.2")
    assert json.loads(alone.printed("context", "show", "--json")) == {"name": "test.2", "stomp-url": "stomp://h:2"}
    shown = alone.printed("context", "show", ARTEMIS_PY_CONTEXT="prod")
    assert shown.split() == ["prod", "url", "https://b:1", "user", "ann"]
    alone.printed("context", "add", "prod", "--user", "bob")
    assert [json.loads(line) for line in alone.printed("context", "ls", "--json").splitlines()] == [
        {"name": "prod", "inUse": False, "url": "https://b:1", "user": "bob"},
        {"name": "test.2", "inUse": True, "stomp-url": "stomp://h:2"},
    ]
    assert alone.printed("context", "remove", "test.2") == "removed test.2\n"
    assert "no context is in use" in alone.refused("context", "show")
    assert stat.S_IMODE((alone.folder / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE((alone.folder / FILE).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "no name", "--url", "http://x"), "'no name' is not a name for a context"),
        (("add", "current", "--url", "http://x"), "'current' is not a name"),
        (("add", "x"), "a context needs --url http://host:port or --stomp-url stomp://host:port"),
        (("add", "x", "--url", "stomp://h"), "--url begins with http:// or https://"),
        (("add", "x", "--url", "http://u:secret@h"), "a URL must not contain a password"),
        (("use", "none"), "there is no context 'none' in"),
        (("remove", "none"), "there is no context 'none' in"),
    ],
)
def test_what_is_no_context(alone: User, words: tuple[str, ...], said: str) -> None:
    found = alone.refused("context", *words)
    assert said in found
    assert "secret" not in found
    assert not (alone.folder / FILE).exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x", "is not TOML"),
        ('[x]\nurl = 7\n', "[x] has url, and a context has texts named"),
        ('[x]\npassword = "hunter2"\n', "[x] has a password; write it to a file that only you can read"),
        ('x = 1\n', "x is neither a context nor current"),
        ('[x]\nurl = "http://h"\ncolour = "red"\n', "[x] has colour"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense(alone: User, text: str, said: str) -> None:
    (alone.folder / FILE).parent.mkdir(parents=True)
    (alone.folder / FILE).write_text(text)
    found = alone.refused("queue", "ls")
    assert said in found
    assert "hunter2" not in found


def test_what_counts_first(user: User) -> None:
    """Arguments, then --context, then the environment, then the context in use."""
    bare = User(user.folder)
    bare.printed("context", "add", "here", "--url", user.url, "--stomp-url", user.stomp_url)
    bare.printed("context", "add", "nowhere", "--url", "http://127.0.0.1:1", "--stomp-url", "stomp://127.0.0.1:1")
    bare.printed("send", "orders", "x")
    assert bare.printed("queue", "show", "orders", "--json")
    assert bare.printed("health") == "UP\n"
    assert "127.0.0.1:1" in bare.refused("queue", "ls", "--context", "nowhere")
    assert "127.0.0.1:1" in bare.refused("queue", "ls", ARTEMIS_PY_CONTEXT="nowhere")
    assert "127.0.0.1:1" in bare.refused("queue", "ls", ARTEMIS_PY_URL="http://127.0.0.1:1")
    assert bare.printed("queue", "ls", "--context", "here", ARTEMIS_PY_URL="http://127.0.0.1:1")
    assert bare.printed("queue", "ls", "--url", user.url, ARTEMIS_PY_CONTEXT="nowhere")
    assert bare.printed("receive", "orders", "--body-only") == "x\n"
    assert "has no stomp-url" in bare.run("context", "add", "half", "--url", user.url).stderr.decode() + bare.refused(
        "receive", "orders", "--context", "half"
    )


def test_each_command_that_talks_to_a_broker_takes_a_context(user: User) -> None:
    """A load on a broker wants it named: the context in use does not count there."""
    bare = User(user.folder)
    bare.printed("context", "add", "here", "--url", user.url, "--stomp-url", user.stomp_url)
    bare.printed("context", "add", "nowhere", "--url", "http://127.0.0.1:1", "--stomp-url", "stomp://127.0.0.1:1")
    bare.printed("context", "use", "nowhere")
    load = ("perf", "--scenario", "1", "--messages", "10", "--warmup", "0")
    assert "127.0.0.1:1" in bare.run(*load, "--context", "nowhere").stderr.decode()
    assert bare.run(*load, "--context", "here").returncode == 0
    for words in (("spans",), ("diff", "--running"), ("cursor", "ls"), ("user", "ls")):
        assert "127.0.0.1:1" in bare.run(*words).stderr.decode()
        assert "127.0.0.1:1" not in bare.run(*words, "--context", "here").stderr.decode()
    assert "there is no context 'none'" in bare.refused("spans", "--context", "none")
    assert "--journal DIR …, or a broker by --url or --context" in bare.refused(
        "spans", "--context", "here", "--journal", "."
    )


def test_a_login_goes_only_where_it_belongs(alone: User) -> None:
    password = alone.folder / "password"
    password.write_text(USERS["ann"])
    password.chmod(0o644)
    with secured_broker(alone.folder) as broker:
        url, stomp = (f"{scheme}://{LOOPBACK}:{broker.ports[scheme]}" for scheme in ("http", "stomp"))
        add = (
            "context",
            "add",
            "prod",
            "--url",
            url,
            "--stomp-url",
            stomp,
            "--user",
            "ann",
            "--password-file",
            "password",
        )
        assert "can be read by others (mode 0644)" in alone.refused(*add)
        password.chmod(0o600)
        alone.printed(*add)
        assert "jobs" in alone.printed("queue", "ls")
        assert alone.printed("send", "jobs", "x") == "sent 1 message to jobs: it is on queue jobs\n"
        assert USERS["ann"] not in alone.printed("context", "show")
        assert USERS["ann"] not in (alone.folder / FILE).read_text()
        said = alone.refused("queue", "ls", "--url", url)  # a URL from elsewhere gets no password
        assert "no user given" in said
        assert "the broker refuses user 'bob'" in alone.refused("queue", "ls", "--user", "bob")
        password.chmod(0o640)
        assert "can be read by others (mode 0640)" in alone.refused("queue", "ls")
