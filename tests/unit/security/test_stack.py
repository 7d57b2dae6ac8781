"""The flags of modules, as Java's LoginContext reads them: two phases, each with the same rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from artemis_py.errors import AuthenticatorError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login_modules import (
    ExternalModule,
    GuestModule,
    LoginRefusedError,
    ModuleStack,
    Stacked,
    Subject,
    TextFileModule,
)
from tests.unit.security.certificates import certificate


@dataclass(eq=False)
class Scripted:
    """A module that does what a word says: yes, no (it refuses), silent, broken; ``fails_at_the_end``: in commit."""

    name: str
    word: str
    calls: list[str] = field(default_factory=list)

    def login(self, credentials: Credentials) -> str | None:
        del credentials
        self.calls.append("login")
        if self.word == "no":
            raise LoginRefusedError("no")
        if self.word == "broken":
            raise AuthenticatorError(f"{self.name} does not answer")
        return None if self.word == "silent" else self.name

    def commit(self, user: str | None, subject: Subject) -> bool:
        self.calls.append("commit")
        if self.word == "fails_at_the_end":
            raise LoginRefusedError("late")
        if user is None:
            return False
        subject.add(user, f"{user}s")
        return True


def played(*script: str) -> tuple[Identity | None, list[list[str]]]:
    """Logs in with modules named a, b, c … from ``flag word``; returns the result, and what each was asked."""
    modules = [Scripted(chr(97 + place), each.split()[1]) for place, each in enumerate(script)]
    stack = ModuleStack([Stacked(each.split()[0], module) for each, module in zip(script, modules, strict=True)])
    return stack.authenticate(Credentials("u", "p")), [module.calls for module in modules]


@pytest.mark.parametrize(
    ("script", "user", "roles"),
    [
        (["required yes"], "a", {"as"}),
        (["required no"], None, set()),
        (["required yes", "required no"], None, set()),
        (["required no", "sufficient yes"], None, set()),
        (["requisite no", "sufficient yes"], None, set()),
        (["sufficient yes", "required no"], "a", {"as"}),
        (["sufficient no", "sufficient yes"], "b", {"bs"}),
        (["sufficient no", "required yes", "optional yes"], "b", {"bs", "cs"}),
        (["sufficient no", "optional no"], None, set()),
        (["optional no", "optional yes"], "b", {"bs"}),
        (["optional no"], None, set()),
        (["optional silent"], None, set()),
        (["required silent"], None, set()),  # everything ignored is no login
        (["required silent", "optional yes"], "b", {"bs"}),
        (["required yes", "sufficient yes", "required yes"], "a", {"as", "bs"}),
        (["required fails_at_the_end", "optional yes"], None, set()),
        (["optional fails_at_the_end", "optional yes"], "b", {"bs"}),
        (["requisite fails_at_the_end", "optional yes"], None, set()),
        ([], None, set()),
    ],
)
def test_who_gets_in(script: list[str], user: str | None, roles: set[str]) -> None:
    assert played(*script)[0] == (None if user is None else Identity(user, frozenset(roles)))


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        (["sufficient yes", "required yes"], [["login", "commit"], []]),
        (["requisite no", "required yes"], [["login"], []]),
        (["required no", "required yes"], [["login"], ["login"]]),
        (["required no", "sufficient yes", "optional yes"], [["login"], ["login"], ["login"]]),
        (["optional no", "required yes"], [["login", "commit"], ["login", "commit"]]),
    ],
)
def test_who_is_asked(script: list[str], calls: list[list[str]]) -> None:
    assert played(*script)[1] == calls


def test_a_module_that_cannot_tell_is_heard_only_if_nobody_else_knows() -> None:
    assert played("optional broken", "optional yes")[0] == Identity("b", frozenset({"bs"}))
    for script in (["required broken", "required yes"], ["optional broken"], ["requisite broken"]):
        with pytest.raises(AuthenticatorError, match="a does not answer"):
            played(*script)


def test_guests() -> None:
    everybody = GuestModule("guest", "guests", without_password_only=False)
    without = GuestModule("guest", "guests", without_password_only=True)
    assert everybody.login(Credentials("ann", "wrong")) == "guest"
    assert without.login(Credentials("ann", "wrong")) is None
    assert without.login(Credentials("ann", "")) is None  # an empty password is one
    assert without.login(Credentials("ann")) == "guest"
    subject = Subject()
    assert without.commit(None, subject) is False
    assert subject == Subject()


def test_the_external_module_succeeds_at_the_end_whatever_happened_before() -> None:
    stack = ModuleStack(
        [
            Stacked("sufficient", ExternalModule()),
            Stacked("required", GuestModule("g", "gs", without_password_only=False)),
        ]
    )
    assert stack.authenticate(Credentials(None)) is None  # the second module is not told, so nobody is known


def test_roles_of_certificates_are_read_again_for_other_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a last line without a line end is whole, is decided by who there is."""
    monkeypatch.setattr("artemis_py.security.users.reloaded._SETTLED_NS", 0)
    users, roles = tmp_path / "users", tmp_path / "roles"
    users.write_text("sam = CN=sam\n")
    roles.write_text("fleet = sam\nview = zoe")
    module = TextFileModule(users, roles, reloads=True)
    client = Credentials(None, certificate=certificate("CN=zoe"))
    with pytest.raises(LoginRefusedError):
        module.login(client)
    module.read()
    users.write_text("sam = CN=sam\nzoe = CN=zoe\n")
    subject = Subject()
    assert module.commit(module.login(client), subject)
    assert subject == Subject(["zoe"], {"view"})
