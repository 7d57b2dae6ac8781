"""``resource-limit-settings``: limits by login, from the file and from properties."""

from __future__ import annotations

from pathlib import Path

from artemis_py.config.reader import load
from artemis_py.config.settings import UserLimits
from tests.kit.documents import broker_xml, errors_of, load_core, warnings_of


def limits(inside: str, match: str = "ann") -> str:
    return (
        f'<resource-limit-settings>\n<resource-limit-setting match="{match}">{inside}</resource-limit-setting>\n'
        "</resource-limit-settings>"
    )


def test_limits_of_a_user() -> None:
    both = "<max-connections>2</max-connections><max-queues>3</max-queues>"
    assert load_core(limits(both)).user_limits == {"ann": UserLimits(connections_max=2, queues_max=3)}
    assert load_core(limits("<max-queues>0</max-queues>")).user_limits == {"ann": UserLimits(queues_max=0)}
    assert load_core(limits("")).user_limits == {"ann": UserLimits()}
    assert load_core("").user_limits == {}
    assert warnings_of(limits(both)) == []


def test_what_artemis_does_not_look_at() -> None:
    (warning,) = warnings_of(limits("<max-sessions>2</max-sessions>"))
    assert "max-sessions is ignored" in warning


def test_a_wrong_number() -> None:
    (problem,) = errors_of(limits("<max-queues>many</max-queues>"))
    assert problem.line == 4


def test_limits_by_properties(tmp_path: Path) -> None:
    """Artemis' bean calls connections sessions."""
    broker_xml(tmp_path, limits("<max-queues>1</max-queues>"))
    (tmp_path / "broker.properties").write_text(
        "resourceLimitSettings.ann.maxSessions=5\nresourceLimitSettings.bob.maxQueues=6\n"
        "resourceLimitSettings.bob.maxFun=7\nresourceLimitSettings.bob.maxSessions=x\n"
    )
    config = load(tmp_path / "broker.xml")
    assert config.user_limits == {"ann": UserLimits(connections_max=5, queues_max=1), "bob": UserLimits(queues_max=6)}
    told = [notice.message for notice in config.notices if "bob" in notice.message]
    assert len(told) == 2


def test_limits_of_the_broker() -> None:
    config = load_core("<max-addresses>5</max-addresses><max-queues>-1</max-queues>")
    assert (config.max_addresses, config.max_queues) == (5, -1)
    assert (load_core("").max_addresses, load_core("").max_queues) == (None, None)
    assert errors_of("<max-queues>-2</max-queues>")
