"""A replay ends with the right to it, and when its client's login has changed."""

from __future__ import annotations

import pytest

from artemis_py.security.identity import Identity
from artemis_py.security.rights import Authorizer
from tests.kit.crash.retained import Archive
from tests.kit.documents import load_core
from tests.kit.life import Life
from tests.kit.permitted import denied, setting


@pytest.mark.parametrize(
    ("roles", "changed", "why"),
    [
        ("boss", set(), denied("ann", "CONSUME", "q")),
        ("clerk", {"ann"}, "The login of this connection has changed: connect again to read on"),
        ("clerk", {"bob"}, ""),
        ("clerk", set(), ""),
    ],
)
def test_a_replay_ends_with_the_right_to_it(roles: str, changed: set[str], why: str) -> None:
    here = Life(archive=Archive())
    here.send("a")
    session = here.client("c").connection.session
    authorizer = Authorizer(load_core(f"<security-settings>{setting('#', consume='clerk')}</security-settings>"))
    session.state.rights = authorizer.rights_of(Identity("ann", frozenset({"clerk"})))
    here.replay("c", "EPOCH")
    assert here.got("c") == ["a"]
    authorizer.use(load_core(f"<security-settings>{setting('#', consume=roles)}</security-settings>"))
    assert session.subscriptions.recheck_rights(changed) == why
