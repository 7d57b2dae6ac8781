"""What `check` says of the files of users and roles: with file and line, and without any password."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from artemis_py.cli import main
from artemis_py.config.problems import Problems
from artemis_py.config.reader import load
from artemis_py.errors import ConfigError
from artemis_py.security.realms import open_realms
from artemis_py.security.user_files import all_user_files, user_files_to_change
from artemis_py.security.users.accounts import UserFiles
from artemis_py.security.users.lint import problems_of_users
from artemis_py.security.users.passwords import hashed
from tests.kit.documents import broker_xml

SETTINGS = (
    '<security-settings><security-setting match="#"><permission type="send" roles="amq,staff"/></security-setting>'
    '<role-mapping from="directory" to="staff"/></security-settings>'
)
HASH = str(hashed("hidden", 10))


@dataclass(eq=False)
class World:
    """A broker.xml with its two files."""

    file: Path
    users: Path
    roles: Path

    def lint(self, users: str | bytes, roles: str = "amq = bob", mode: int = 0o600) -> list[str]:
        """The findings, each as `file:line: text`, without the folder."""
        data = users if isinstance(users, bytes) else users.encode("latin-1")
        self.users.write_bytes(data.removesuffix(b"\n") + b"\n")
        self.users.chmod(mode)
        self.roles.write_text(roles.removesuffix("\n") + "\n")
        return self.found()

    def found(self) -> list[str]:
        problems = problems_of_users(load(self.file, environ={}))
        assert all(problem.severity == "note" or problem.code == "users" for problem in problems)
        return [str(problem).replace(f"{self.file.parent}/", "") for problem in problems]


@pytest.fixture
def world(tmp_path: Path) -> World:
    users, roles = (tmp_path / f"artemis-{name}.properties" for name in ("users", "roles"))
    return World(broker_xml(tmp_path, SETTINGS), users, roles)


def test_nothing_is_wrong(world: World) -> None:
    assert world.lint(f"# x\nbob = {HASH}\n", "amq=bob\ndirectory = bob\n", mode=0o644) == []


@pytest.mark.parametrize(
    ("users", "finding"),
    [
        ("\nbob = ENC(c2FsdA==:4096:c3Rv:c2Vy)", "2: user 'bob': nobody can log in with this password: it is a SCRAM"),
        ("bob|SHA256 = ENC(c2FsdA==:4096:c3Rv:c2Vy)\nbob=x", "1: user 'bob|SHA256': nobody can log in with"),
        ("bob = ENC(1024:xx:yy)", "1: user 'bob': nobody can log in with this password: its salt and hash are not"),
        (f"bob = {HASH} ", "1: user 'bob': nobody can log in with this password: a hash begins here that is not whole"),
        ("bob = hidden ", "1: user 'bob': there are blanks around the password, and they count"),
        ("hidden\nbob = x", "1: nobody can log in by this line: the password is empty; set a new"),
        ("bob = ENC(2000000:AB:CD)", "1: user 'bob': each login costs 2,000,000 iterations"),
        ("bob = hidden\n\nbob = hidden", "1: 'bob' is given again in line 3, which alone counts"),
        ("a=\\u12\nbob = hidden", "1: nothing of this file is read, by Artemis neither: \\u must be followed"),
        ("bob = hidden\nzoë = hidden".encode(), "2: this looks like UTF-8, but is read as ISO-8859-1; write other"),
        ("bob = hidden\neve = hidden", "2: user 'eve' has no role, so may do nothing; the roles are in"),
    ],
)
def test_users(world: World, users: str | bytes, finding: str) -> None:
    found = world.lint(users)
    assert found[0].startswith(f"artemis-users.properties:{finding}")
    assert not any("hidden" in each or HASH in each or "c2Fs" in each for each in found)


@pytest.mark.parametrize(
    ("roles", "finding"),
    [
        (
            "amq = bob, eve",
            "1: role amq: ' eve' has a blank; nothing is trimmed, so this names no user; did you mean 'eve'?",
        ),
        ("#\namq = bob,evee", "2: role amq: there is no user 'evee' in the users file; did you mean 'eve'?"),
        ("amq = bob\nstaf = bob", "2: role staf allows nothing: no security-setting names it; did you mean 'staff'?"),
        ("amq = bob\namq = eve", "1: 'amq' is given again in line 2, which alone counts"),
    ],
)
def test_roles(world: World, roles: str, finding: str) -> None:
    found = world.lint(f"bob = {HASH}\neve = {HASH}", roles)
    assert f"artemis-roles.properties:{finding}" in found


def test_plain_passwords_that_others_may_read(world: World) -> None:
    users = f"bob = {HASH}\nann = hidden\neve = hidden\n"
    roles = "amq = bob,ann,eve"
    assert world.lint(users, roles) == []
    [finding] = world.lint(users, roles, mode=0o640)
    assert finding.startswith("artemis-users.properties:2: plain-text passwords (lines 2, 3) in a file that others may")


def test_missing_and_unreadable_files(world: World) -> None:
    [finding] = world.found()
    assert finding.startswith("broker.xml: NOBODY CAN LOG IN: security is on, and artemis-users.properties does not")
    assert "artemis-py user add admin --role amq --config " in finding
    world.users.write_text(f"bob = {HASH}")
    assert world.found() == [
        "artemis-roles.properties: nobody can log in: the file cannot be read: No such file or directory"
    ]
    world.roles.mkdir()
    assert world.found() == ["artemis-roles.properties: nobody can log in: it is not a regular file"]


def test_without_security_nothing_is_looked_at(world: World) -> None:
    broker_xml(world.file.parent, "<security-enabled>false</security-enabled>")
    assert world.lint("bob = \\u12") == []


def test_the_element_names_the_files(world: World) -> None:
    folder = world.file.parent
    assert all_user_files(load(world.file, environ={})) == [UserFiles(world.users, world.roles)]
    broker_xml(world.file.parent, "<users-file> etc/users </users-file>")
    assert all_user_files(load(world.file, environ={})) == [
        UserFiles(folder / "etc/users", folder / "etc/artemis-roles.properties")
    ]
    broker_xml(world.file.parent, f'<users-file roles-file="{folder}/r">u</users-file>')
    assert all_user_files(load(world.file, environ={})) == [UserFiles(folder / "u", folder / "r")]
    assert world.found()[0].startswith("broker.xml:3: NOBODY CAN LOG IN: security is on, and u does not exist")
    broker_xml(world.file.parent, '<users-file first-user="ann">u</users-file>')
    assert world.found() == ["broker.xml:3: u does not exist yet; artemis-py run makes it, with a first user ann"]
    broker_xml(world.file.parent, '<users-file first-role="amq">u</users-file>')
    [warning] = [notice for notice in load(world.file, environ={}).notices if notice.code == "without-limit"]
    assert "first-role has no effect without first-user" in str(warning)
    broker_xml(world.file.parent, "<users-file> </users-file>")
    with pytest.raises(ConfigError, match="users-file must name a file"):
        load(world.file, environ={})


def test_files_of_a_login_config(world: World) -> None:
    (world.file.parent / "login.config").write_text(
        "activemq { org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required\n"
        ' org.apache.activemq.jaas.properties.user="people" org.apache.activemq.jaas.properties.role="groups"; };'
    )
    broker_xml(world.file.parent, '<authentication login-config="login.config"/>')
    people, groups = world.file.parent / "people", world.file.parent / "groups"
    people.write_text("bob = hidden \n")
    people.chmod(0o600)
    groups.write_text("amq = bob\n")
    config = load(world.file, environ={})
    assert all_user_files(config) == [UserFiles(people, groups)]
    assert user_files_to_change(config) == UserFiles(people, groups)
    problems = Problems()
    open_realms(config, problems)
    [finding] = problems.found
    assert finding.message.startswith("user 'bob': there are blanks around the password")


def test_lines_that_may_have_been_cut(world: World) -> None:
    world.users.write_text(f"bob = {HASH}\nann = hidd")
    world.users.chmod(0o600)
    world.roles.write_text("amq = bob\nstaff = ann,b")
    cut = "the last line of the file has no line end, so it may have been cut; end it with one"
    assert world.found() == [
        f"artemis-roles.properties:2: this line gives nobody a role: {cut}",
        f"artemis-users.properties:2: nobody can log in by this line: {cut}",
    ]
    world.users.write_text(f"bob = {HASH}")
    assert not any("cut" in each for each in world.found() if each.startswith("artemis-users"))


def test_check_shows_no_line_of_these_files(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.lint(
        f"bob = hidden \nhidden2 {HASH}\neve|SHA256 = ENC(c2FsdA==:4096:c3Rv:c2Vy)", "amq = bob, hid", mode=0o666
    )
    for arguments in (["--strict"], ["--json"]):
        main.main(["check", str(world.file), *arguments])
        said = capsys.readouterr().out
        assert "artemis-users.properties" in said
        for secret in ("hidden ", "hidden\n", HASH, HASH[10:40], "c2FsdA"):
            assert secret not in said
    assert json.loads(said)["warnings"] > 3
