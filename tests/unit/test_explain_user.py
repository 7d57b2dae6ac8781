"""``explain --user``: what somebody may do at an address, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artemis_py.cli.main import main

SETTINGS = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="stomp">tcp://127.0.0.1:61613?protocols=STOMP</acceptor></acceptors>
<security-settings>
<security-setting match="#"><permission type="send" roles="shop"/><permission type="browse" roles="shop"/>
</security-setting>
<security-setting match="orders.#"><permission type="send" roles="shop"/>
<permission type="consume" roles="kitchen,chef"/></security-setting>
<security-setting match="orders.eu.one"><permission type="consume" roles="shop"/></security-setting>
<role-mapping from="cooks" to="kitchen"/>
</security-settings></core></configuration>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "broker.xml").write_text(SETTINGS)
    (tmp_path / "artemis-users.properties").write_text("bob = secret\neve = secret\n")
    (tmp_path / "artemis-roles.properties").write_text("shop = bob\ncooks = eve\n")
    return tmp_path


def explained(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> dict[str, object]:
    assert main(["explain", "--config", str(folder / "broker.xml"), "--json", *arguments]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)["user"]
    return found


def test_a_user_of_the_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = explained(capsys, folder, "orders.eu", "--user", "bob")
    assert (shown["user"], shown["roles"]) == ("bob", ["shop"])
    permissions = shown["permissions"]
    assert isinstance(permissions, dict)
    assert permissions["send"] == {"granted": True, "why": "by shop"}
    assert permissions["consume"] == {
        "granted": False,
        "why": "needs the role kitchen or chef (or cooks, by role-mapping)",
    }
    assert permissions["browse"] == {"granted": False, "why": "nobody has it"}
    notes = shown["notes"]
    assert isinstance(notes, list)
    (note,) = notes
    assert note.startswith("match # (")
    assert note.endswith("grants browse, but is passed over")


def test_a_role_by_mapping(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    permissions = explained(capsys, folder, "orders.eu", "--user", "eve")["permissions"]
    assert isinstance(permissions, dict)
    assert permissions["consume"] == {"granted": True, "why": "by cooks"}


def test_the_older_name_of_a_queue(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    permissions = explained(capsys, folder, "orders.eu::one", "--user", "bob")["permissions"]
    assert isinstance(permissions, dict)
    assert permissions["consume"] == {"granted": True, "why": "by the setting for orders.eu.one, unless named in full"}


def test_roles_of_somebody_from_elsewhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--config", str(folder / "broker.xml"), "orders.eu", "--roles", "chef, other"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "user somebody (with the roles chef, other)" in lines
    assert "  consume                yes  by chef" in lines
    assert any(line.startswith("security (match orders.#, ") and line.endswith("; it alone decides)") for line in lines)


def test_an_unknown_user(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--config", str(folder / "broker.xml"), "orders.eu", "--user", "bobb"]) != 0
    told = capsys.readouterr().err
    assert "there is no user bobb" in told
    assert "did you mean bob?" in told
    assert "secret" not in told
