"""Real files load: a few that are always here, and a larger collection beside the checkout when it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.config.reader import load

HERE = Path(__file__).resolve()
KEPT = sorted((HERE.parent / "corpus").glob("*.xml"))
COLLECTION = HERE.parents[4] / "shared" / "corpus" / "artemis-examples"


def test_some_files_are_always_here() -> None:
    assert len(KEPT) == 7


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_a_kept_file_loads(path: Path) -> None:
    config = load(path, environ={})
    assert config.acceptors
    assert all(problem.severity != "error" for problem in config.notices)


@pytest.mark.skipif(not COLLECTION.is_dir(), reason="the collection of Artemis' examples is not beside the checkout")
def test_every_file_of_the_collection_loads() -> None:
    paths = sorted(COLLECTION.glob("*.xml"))
    assert len(paths) > 60
    for path in paths:
        config = load(path, environ={})
        assert config.acceptors
        assert len({problem.message for problem in config.notices}) == len(config.notices), path.name


def test_values_of_a_real_file() -> None:
    config = load(HERE.parent / "corpus" / "features__standard__paging__server0__broker.xml", environ={})
    limited = config.settings_for("pagingQueueLimited")
    assert (limited.max_size_messages, limited.max_size_bytes, limited.page_full_policy) == (100, 10 * 1024**2, "FAIL")
    assert config.settings_for("pagingQueue").max_size_bytes == 100000
    assert [address.name for address in config.addresses] == ["pagingQueue", "pagingQueueLimited", "exampleQueue"]
    assert [(each.host, each.port, each.protocols, each.refused) for each in config.acceptors] == [
        ("localhost", 61616, ("STOMP",), None)
    ]
    assert config.security.roles_for("pagingQueue", "send") == ("guest",)


def test_the_ports_of_a_default_artemis_file_stay_closed_while_security_is_on() -> None:
    config = load(HERE.parent / "corpus" / "features__standard__opentelemetry__server0__broker.xml", environ={})
    assert len(config.acceptors) > 3
    assert all(acceptor.refused for acceptor in config.acceptors)
    foreign = [each for each in config.notices if "unsupported protocols" in each.message]
    assert len(foreign) == 1
