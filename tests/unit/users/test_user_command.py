"""`artemis-py user` and `artemis-py mask`, as a shell calls them."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.cli import main, password_input
from artemis_py.cli import user as user_command
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.security.users.passwords import hashed, stored_password
from tests.kit.documents import broker_xml
from tests.kit.users import CHEAP

CORE = (
    '<acceptors><acceptor name="s">tcp://127.0.0.1:1?protocols=STOMP</acceptor></acceptors><security-settings>'
    '<security-setting match="#"><permission type="send" roles="amq"/><permission type="consume" roles="amq,view"/>'
    "</security-setting></security-settings>"
)
LOGIN = "org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule"
OPTION = "org.apache.activemq.jaas.properties"
MODULE = f'activemq {{ {LOGIN} required {OPTION}.user="people" {OPTION}.role="groups"; }};'


@dataclass(eq=False)
class Shell:
    """Runs commands in a folder with a broker.xml."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    is_terminal: bool = False

    def run(self, *arguments: str, code: int = 0, given: str = "") -> tuple[str, str]:
        """What a command says on standard output and standard error; `given` is its standard input."""
        self.monkeypatch.setattr("sys.stdin", Mock() if self.is_terminal else io.StringIO(given))
        assert main.main(list(arguments)) == code
        said = self.capsys.readouterr()
        return said.out, said.err

    def add(self, user: str, password: str, *arguments: str) -> str:
        return self.run("user", "add", user, "--password-file", "-", *arguments, given=f"{password}\n")[0]

    def refuse(self, *arguments: str, given: str = "") -> str:
        out, err = self.run(*arguments, code=1, given=given)
        assert out == ""
        return err

    def asked(self, *answers: str) -> list[str]:
        """Somebody sits at a terminal and answers so; returns what was asked, later."""
        prompts: list[str] = []
        left = list(answers)
        self.monkeypatch.setattr(password_input, "getpass", lambda prompt: prompts.append(prompt) or left.pop(0))
        self.is_terminal = True
        return prompts


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    for name in ("ARTEMIS_PY_PASSWORD", "ARTEMIS_PY_NEW_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(user_command, "hashed", partial(hashed, iterations=CHEAP))
    broker_xml(tmp_path, CORE)
    return Shell(tmp_path, capsys, monkeypatch)


def test_from_the_first_user_to_none(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_command, "hashed", hashed)
    said = shell.add("ann", "pass phrase", "--role", "amq, view")
    assert said == "added ann to artemis-users.properties with the roles amq, view\n"
    shell.add("bob", "x", "--plaintext", "--role", "view")
    out, err = shell.run("user", "list")
    assert out.splitlines() == [
        "user  roles      password",
        "ann   amq, view  hash, 100,000 iterations",
        "bob   view       plain text",
    ]
    assert err == ""
    out, _ = shell.run("user", "list", "--json")
    assert [json.loads(line)["roles"] for line in out.splitlines()] == [["amq", "view"], ["view"]]
    out, _ = shell.run("user", "reset", "bob", "--role", "amq")
    assert out == "changed the roles of bob in artemis-roles.properties\n"
    assert (shell.folder / "artemis-users.properties").read_text().endswith("bob = x\n")
    out, _ = shell.run("user", "reset", "bob", "--password-file", "-", given="new\n")
    assert out == "changed the password of bob in artemis-users.properties\n"
    assert (shell.folder / "artemis-roles.properties").read_text() == "amq = ann,bob\nview = ann\n"
    assert "bob = ENC(100000:" in (shell.folder / "artemis-users.properties").read_text()
    for user in ("ann", "bob"):
        assert shell.run("user", "rm", user)[0] == f"removed {user} from artemis-users.properties\n"
    for file in ("artemis-users.properties", "artemis-roles.properties"):
        assert (shell.folder / file).read_text() == "# nobody\n"


def test_would_this_login_work(shell: Shell) -> None:
    shell.add("ann", "right", "--role", "view")
    out, _ = shell.run("user", "test", "ann", "--password-file", "-", "--address", "orders", given="right")
    assert out.splitlines() == [
        "accepted as user ann; roles: view",
        "on orders (match #, broker.xml:3)",
        "  may: consume",
        f"  may not: {', '.join(each for each in PERMISSIONS if each != 'consume')}",
    ]
    out, _ = shell.run("user", "test", "ann", "--password-file", "-", code=1, given="wrong")
    assert out == "refused: the password is not that of ann in artemis-users.properties\n"
    out, _ = shell.run("user", "test", "eve", "--password-file", "-", code=1, given="wrong")
    assert out == "refused: there is no user eve in artemis-users.properties\n"
    out, _ = shell.run("user", "test", "ann", "--password-file", "-", "--json", given="right")
    assert json.loads(out) == {"login": "ann", "works": True, "user": "ann", "roles": ["view"]}
    out, _ = shell.run("user", "test", "ann", "--password-file", "-", "--json", code=1, given="wrong")
    assert json.loads(out) == {"login": "ann", "works": False}


def test_the_password_of_a_login_is_not_that_of_a_new_user(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTEMIS_PY_PASSWORD", "mine")
    assert "set ARTEMIS_PY_NEW_PASSWORD" in shell.refuse("user", "add", "ann")
    monkeypatch.setenv("ARTEMIS_PY_NEW_PASSWORD", "hers")
    shell.run("user", "add", "ann", "--role", "amq")
    out, _ = shell.run("user", "test", "ann", code=1)
    assert out.startswith("refused")
    monkeypatch.setenv("ARTEMIS_PY_PASSWORD", "hers")
    shell.run("user", "test", "ann")


def test_somebody_is_asked(shell: Shell) -> None:
    prompts = shell.asked("secret", "secret", "secret")
    shell.run("user", "add", "ann", "--role", "amq")
    shell.run("user", "test", "ann")
    assert prompts == ["password of ann: ", "once more: ", "password of ann: "]
    shell.asked("one", "other")
    assert "differ; nothing was changed" in shell.refuse("user", "reset", "ann")
    shell.asked("", "")
    assert "an empty password is refused" in shell.refuse("user", "add", "bob")
    assert [line.split()[0] for line in shell.run("user", "list")[0].splitlines()[1:]] == ["ann"]


def test_a_password_in_the_arguments_is_warned_of(shell: Shell) -> None:
    _, err = shell.run("user", "add", "ann", "--role", "amq", "--password", "seen")
    assert "is seen by others on this machine" in err
    assert "seen" not in err.replace("is seen by", "")


def test_warnings(shell: Shell) -> None:
    _, err = shell.run("user", "add", "ann", "--password-file", "-", given="x")
    assert "without a role ann may do nothing: artemis-py user reset ann --role ROLE" in err
    broker_xml(shell.folder, CORE + "<security-enabled>false</security-enabled>")
    assert "security-enabled is false" in shell.run("user", "rm", "ann")[1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("user", "rm", "eve"), "has no user eve"),
        (("user", "list"), "artemis-users.properties: No such file"),
        (("user", "add", "a,b"), "a comma separates names"),
        (("user", "add", "ann"), "there is no password and nobody to ask: use --password-file"),
        (("user", "add", "ann", "--password-file", "nowhere"), "--password-file nowhere: No such file"),
        (("user", "test", "ann", "--acceptor", "x"), "there is no acceptor x; the acceptors are s"),
        (("mask",), "without --hash nothing is masked"),
    ],
)
def test_what_is_refused(shell: Shell, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in shell.refuse(*arguments)
    assert not list(shell.folder.glob("*.properties"))


def test_the_files_of_an_instance(shell: Shell) -> None:
    """Those that its login.config names."""
    etc = shell.folder / "shop" / "etc"
    etc.mkdir(parents=True)
    broker_xml(etc, CORE)
    (etc / "login.config").write_text(MODULE)
    (etc / "bootstrap.xml").write_text(
        '<broker xmlns="http://activemq.apache.org/schema"><jaas-security domain="activemq"/>'
        '<server configuration="file:./etc/broker.xml"/></broker>'
    )
    (etc / "people").write_text("# here\nbob = builder\n")
    (etc / "groups").write_text("amq = bob\n")
    shell.add("ann", "x", "--role", "amq", "--config", "shop")
    assert (etc / "people").read_text().startswith("# here\nbob = builder\nann = ENC(")
    assert (etc / "groups").read_text() == "amq = bob,ann\n"
    out, _ = shell.run("user", "test", "bob", "--config", "shop", "--password-file", "-", given="builder")
    assert out == "accepted as user bob; roles: amq\n"


def test_mask_prints_a_hash(shell: Shell) -> None:
    out, err = shell.run("mask", "--hash", "--password-file", "-", given="geheim\n")
    assert err == ""
    stored = stored_password(out.removesuffix("\n"))
    assert stored.verify("geheim")
    assert stored.work == 100_000 * 4
