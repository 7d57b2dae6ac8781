"""What commands say of a configuration that a running broker refuses, and of a port that speaks something else."""

from __future__ import annotations

import pytest

from tests.e2e.commands.user import User
from tests.kit.process import configuration, started

WRONG = """<address name="a"><anycast><queue name="a" ring-size="x"/></anycast></address>
<address name="b"><anycast><queue name="b" max-consumers="y"/></anycast></address>"""


@pytest.mark.parametrize(
    ("words", "code"), [(("broker", "reload", "--yes"), 1), (("diff", "--running"), 2)], ids=["reload", "diff"]
)
def test_each_problem_of_the_file_has_a_line(alone: User, words: tuple[str, ...], code: int) -> None:
    file = alone.folder / "broker.xml"
    file.write_text(configuration())
    with started(file) as broker:
        user = User(alone.folder, broker)
        file.write_text(configuration(addresses=WRONG))
        broker.await_said("CFG-1002")
        first, *problems = user.refused(*words, code=code).splitlines()
        place = user.url.removeprefix("http://")
        assert first == f"artemis-py: {place}: the configuration is refused, and nothing has changed"
        assert [problem.partition(": ")[2][:30] for problem in problems] == [
            "attribute ring-size of queue h", "attribute max-consumers of que",
        ]  # fmt: skip


def test_a_port_that_speaks_http(user: User) -> None:
    place = user.url.removeprefix("http://")
    said = user.refused("send", "orders", "hello", "--stomp", f"stomp://{place}")
    assert said == (
        f"artemis-py: {place}: the broker has closed the connection before CONNECTED; is this a STOMP acceptor?\n"
    )


def test_a_port_that_speaks_stomp(user: User) -> None:
    place = user.stomp_url.removeprefix("stomp://")
    said = user.refused("queue", "ls", "--url", f"http://{place}")
    assert said.startswith(f"artemis-py: {place}: This port speaks STOMP")


def test_health_takes_its_url_like_the_others(user: User) -> None:
    assert user.printed("health", "--url", user.url) == user.printed("health", user.url)
