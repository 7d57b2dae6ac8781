"""A file that was cut, at any byte, lets nobody in whom the whole file would not let in with the same credential."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.cli.context import Contexts
from artemis_py.config.instance import read_bootstrap, read_jolokia_access
from artemis_py.config.problems import Problems
from artemis_py.config.reader import load
from artemis_py.config.tables.declarations import Origin
from artemis_py.config.xml.source import Source, load_text, parse
from artemis_py.errors import ArtemisError, AuthenticatorError, ConfigError
from artemis_py.security.certificate import SubjectName, parts_of
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.key_store import StoreError, read_pem
from artemis_py.security.login_modules import certificate_table
from artemis_py.security.masked import Codec, MaskedError, reveal
from artemis_py.security.realms import open_realms
from artemis_py.security.users import reloaded
from artemis_py.security.users.accounts import Accounts, UserFiles
from artemis_py.security.users.authenticator import PropertiesUsers
from artemis_py.security.users.passwords import hashed
from artemis_py.security.users.tables import TableError, escaped_key, escaped_value, roles_table, users_table
from tests.kit.certificates import Authority
from tests.kit.documents import broker_xml

HASH = str(hashed("hidden", 1))
USERS = f"""# who may log in
admin = {HASH}
bob = builder
my\\ ann: a\\u00e9 \\
   pass phrase
eve={HASH[:40]}\\
    {HASH[40:]}
zoe = last
"""
ROLES = "amq = admin,bob\nview = bob,bobby,\\\n  zoe,zoeann\nguests=eve\n"
ROOT = Path(__file__).parents[3]


def prefixes(text: str) -> Iterator[str]:
    return (text[:length] for length in range(len(text) + 1))


def tried(text: str) -> list[str]:
    """Everything that a cut line could take for a name or a password."""
    return sorted({part[:end] for line in text.splitlines() for part in line.split() for end in range(len(part) + 1)})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_users(end: str) -> None:
    text = USERS.replace("\n", end)
    whole = users_table(text.encode("latin-1")).passwords
    words = ["", "hidden", "aé pass phrase", *tried(text)]
    for cut in prefixes(text):
        try:
            found = users_table(cut.encode("latin-1")).passwords
        except TableError:
            continue
        for user, stored in found.items() - whole.items():
            for word in words:
                if stored.verify(word):
                    assert whole[user].verify(word), (cut[-30:], user, word)


_NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters=","), min_size=1, max_size=6)


@given(st.dictionaries(_NAMES, _NAMES | st.sampled_from([HASH, "ENC", "ENC(x", HASH + "x"]), max_size=4), st.data())
def test_any_users(users: dict[str, str], data: st.DataObject) -> None:
    text = "".join(f"{escaped_key(user)} = {escaped_value(word)}\n" for user, word in users.items())
    cut = text[: data.draw(st.integers(0, len(text)))]
    whole = users_table(text.encode("latin-1")).passwords
    try:
        found = users_table(cut.encode("latin-1")).passwords
    except TableError:
        return
    for user, stored in found.items():
        behind_a_hash = users.get(user) == HASH + "x"  # cut there, the file has a whole hash, and nothing can tell
        for word in ("", "hidden", user, *prefixes(users.get(user, "")), *tried(cut)):
            assert not stored.verify(word) or whole[user].verify(word) or (behind_a_hash and word == "hidden")


def test_each_line_of_a_hash_that_is_cut_alone() -> None:
    """An editor, or a hole in the file, may take the end of a line away and leave its line end."""
    for cut in prefixes(f"admin = {HASH}"):
        found = users_table(f"bob = builder\n{cut}\nzoe = last\n".encode()).passwords
        for word in ("", *tried(HASH)):
            assert not any(stored.verify(word) for user, stored in found.items() if user not in ("bob", "zoe"))
        if cut != f"admin = {HASH}":
            assert "admin" not in found or not found["admin"].verify("hidden")


@pytest.mark.parametrize("known", [(), ("admin", "bob", "bobby", "zoe", "zoeann", "eve"), ("bobby", "zoeann", "admin")])
def test_roles(known: tuple[str, ...]) -> None:
    whole = roles_table(ROLES.encode(), known).by_user
    for cut in prefixes(ROLES):
        for user, roles in roles_table(cut.encode(), known).by_user.items():
            assert roles <= whole.get(user, frozenset()), (cut[-20:], user)


@pytest.mark.parametrize("text", ["amq = admin", "# roles\n\namq = bob,admin", "view = eve\namq=admin"])
def test_the_last_line_of_an_artemis_instance_has_no_line_end(text: str) -> None:
    """``artemis create`` writes the files so. A name that no other begins with is whole."""
    assert roles_table(text.encode(), {"admin", "bob", "eve"}).by_user["admin"] == {"amq"}
    assert roles_table(text.encode(), {"admin", "administrator"}).by_user.get("admin") is None
    assert roles_table(text.encode(), {"bob"}).flaws
    assert roles_table((text + "\\").encode(), {"admin"}).flaws
    assert roles_table((text + ",").encode(), {"admin"}).flaws


def test_an_artemis_instance_lets_its_administrator_in(tmp_path: Path) -> None:
    (tmp_path / "users").write_text(f"# artemis\n\nadmin = {HASH}")
    (tmp_path / "roles").write_text("# artemis\n\namq = admin")
    told: list[str] = []
    realm = PropertiesUsers(tmp_path / "users", tmp_path / "roles", tell=told.append)
    assert realm.authenticate(Credentials("admin", "hidden")) == Identity("admin", frozenset({"amq"}))
    assert told == []
    accounts = Accounts(UserFiles(tmp_path / "users", tmp_path / "roles"))
    accounts.add("administrator", "plain", ["view"])
    assert {one.user: one.roles for one in accounts.all()} == {"admin": ("amq",), "administrator": ("view",)}
    accounts.add("admi", "plain", [])
    assert realm.authenticate(Credentials("admin", "hidden")) == Identity("admin", frozenset({"amq"}))


class World:
    """Two files in force."""

    def __init__(self, folder: Path) -> None:
        self.users, self.roles = folder / "users", folder / "roles"
        self.users.write_text(USERS, "latin-1")
        self.roles.write_text(ROLES, "latin-1")
        self.told: list[str] = []
        self.realm = PropertiesUsers(self.users, self.roles, tell=self.told.append)
        assert self.who() == {"admin": {"amq"}, "bob": {"amq", "view"}, "zoe": {"view"}}

    def who(self) -> dict[str, set[str]]:
        words = {"admin": "hidden", "bob": "builder", "zoe": "last"}
        found = [self.realm.authenticate(Credentials(user, word)) for user, word in words.items()]
        return {one.user: set(one.roles) for one in found if isinstance(one, Identity)}


def test_a_cut_in_a_line_changes_nothing_of_what_is_in_force(tmp_path: Path) -> None:
    world = World(tmp_path)
    before = world.who()
    for file, text in ((world.users, USERS), (world.roles, ROLES)):
        for cut in prefixes(text[:-1]):
            file.write_text(cut, "latin-1")
            if cut.endswith(("\n", HASH[-20:])) or cut.rpartition("\n")[2].startswith("#") or cut == ROLES[:-1]:
                continue  # an edit that names fewer, or a line that is whole
            assert world.who() == before, cut[-30:]
            assert any(file.complaint for file in world.realm.files)
        file.write_text(text, "latin-1")
        assert world.who() == before
        assert not any(file.complaint for file in world.realm.files)
    assert any("what was read before stays in force" in line for line in world.told)
    assert not any(word in line for line in world.told for word in ("builder", "hidden", HASH[:20], "pass"))


def test_a_cut_at_a_line_end_is_an_edit_that_names_fewer(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.users.write_text(USERS[: USERS.index("zoe")], "latin-1")
    assert set(world.who()) == {"admin", "bob"}
    world.users.write_text("# nobody\n")
    assert world.who() == {}
    assert world.told == []


CERTIFICATES = "sam = CN=sam, O=shop\nteam = /CN=[a-z]+, OU=x/.*, O=shop/\nzoe=CN=zoe, O=sea\n"


def test_users_by_their_certificate() -> None:
    values = [line.partition("=")[2].strip() for line in CERTIFICATES.splitlines()]
    texts = {"CN=kim, OU=x/1, O=shop", *(cut for value in values for cut in prefixes(value))}
    names = [SubjectName(text, parts_of(text) or ()) for text in sorted(texts)]
    table = certificate_table(CERTIFICATES.encode())
    whole = {name.text: table.user_of(name) for name in names}
    assert whole["CN=sam, O=shop"] == "sam"
    assert whole["CN=kim, OU=x/1, O=shop"] == "team"
    for cut in prefixes(CERTIFICATES):
        try:
            table = certificate_table(cut.encode())
        except TableError:
            continue
        for name in names:
            assert table.user_of(name) in (None, whole[name.text]), (cut[-20:], name)


LOGIN = """other {
   org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule required;
};
activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required reload=true
      org.apache.activemq.jaas.properties.user="users" org.apache.activemq.jaas.properties.role="roles";
};
"""


def test_login_config(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ann = welcome\n")
    (tmp_path / "roles").write_text("staff = ann\n")
    broker_xml(tmp_path, '<authentication login-config="login.config"/>')
    file = tmp_path / "login.config"
    file.write_text(LOGIN)
    config = load(tmp_path / "broker.xml", environ={})
    realms = open_realms(config)
    assert realms.authenticate(Credentials("ann", "welcome"))
    for cut in prefixes(LOGIN[: LOGIN.rindex(";")]):
        file.write_text(cut)
        with pytest.raises(ConfigError):
            open_realms(config, before=realms)
    file.write_text(LOGIN[: LOGIN.index("activemq {")])
    problems = Problems()
    open_realms(config, problems)
    assert any("so the domain other decides who may log in" in one.message for one in problems.found)


def test_a_reload_of_the_configuration_takes_no_cut_file_of_users(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ann = welcome\nbob = builder\n")
    (tmp_path / "roles").write_text("staff = ann\n")
    (tmp_path / "login.config").write_text(LOGIN)
    broker_xml(tmp_path, '<authentication login-config="login.config"/>')
    config = load(tmp_path / "broker.xml", environ={})
    realms = open_realms(config)
    (tmp_path / "users").write_text("ann = welcome\nbob = buil")
    again = open_realms(config, before=realms)
    assert again.authenticate(Credentials("bob", "builder"))
    assert not again.authenticate(Credentials("bob", "buil"))
    alone = open_realms(config)
    assert not alone.authenticate(Credentials("bob", "buil"))
    assert alone.authenticate(Credentials("ann", "welcome"))


@pytest.mark.parametrize("name", ["users", "roles"])
def test_a_reload_says_of_a_cut_file_what_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What it read of the file is tried, and does not count: nobody loses anything by it."""
    whole = {"users": "ann = welcome\nbob = builder\n", "roles": "staff = ann,bob\n"}
    for each, text in whole.items():
        (tmp_path / each).write_text(text)
    (tmp_path / "login.config").write_text(LOGIN)
    broker_xml(tmp_path, '<authentication login-config="login.config"/>')
    said: list[str] = []
    monkeypatch.setattr(reloaded, "warn", lambda text, *_, **__: said.append(text))
    config = load(tmp_path / "broker.xml", environ={})
    realms = open_realms(config)
    assert realms.authenticate(Credentials("bob", "builder")) == Identity("bob", frozenset({"staff"}))
    (tmp_path / name).write_text(whole[name][:-3])
    again = open_realms(config, before=realms)
    assert again.authenticate(Credentials("bob", "builder")) == Identity("bob", frozenset({"staff"}))
    assert said
    assert all(line.endswith("what was read before stays in force") for line in said)
    said.clear()
    assert open_realms(config).authenticate(Credentials("ann", "welcome"))
    assert [line for line in said if line.endswith("nobody gets anything by this line")] == said != []


ACCESS = """<restrict>
   <cors><allow-origin>*://shop.example*</allow-origin><strict-checking/></cors>
</restrict>
"""
BOOTSTRAP = """<broker xmlns="http://activemq.apache.org/schema">
   <security-manager class-name="org.apache.activemq.artemis.spi.core.security.ActiveMQBasicSecurityManager">
      <property key="bootstrapUser" value="ann"/><property key="bootstrapPassword" value="secret"/>
      <property key="bootstrapRole" value="amq"/>
   </security-manager>
   <server configuration="file:broker.xml"/>
</broker>
"""


@pytest.mark.parametrize("name", ["jolokia-access.xml", "bootstrap.xml", "management.xml", "broker.xml"])
def test_files_of_xml_are_refused(tmp_path: Path, name: str) -> None:
    text = {"jolokia-access.xml": ACCESS, "bootstrap.xml": BOOTSTRAP, "management.xml": ACCESS}.get(name)
    text = (ROOT / "broker.xml").read_text("utf-8") if text is None else text
    file = tmp_path / name
    for length in range(0, len(text.rstrip()), 7):
        file.write_text(text[:length])
        problems = Problems()
        if name == "jolokia-access.xml":
            assert read_jolokia_access(str(file), {}, problems) is None
        elif name == "bootstrap.xml":
            assert read_bootstrap(str(file), {}, problems).users is None
        else:
            content = load_text(str(file), Origin(str(file), 0), problems)
            assert content is not None
            assert parse(content, str(file), {}, Source(str(file)), problems) is None
        assert problems.has_errors


def test_a_first_user_without_a_password_is_refused(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    broker_xml(tmp_path / "etc", "")
    (tmp_path / "etc" / "bootstrap.xml").write_text(BOOTSTRAP.replace('"secret"', '""').replace("file:broker.xml", ""))
    with pytest.raises(ConfigError, match="bootstrapPassword is empty"):
        open_realms(load(tmp_path, environ={}))


def test_masked_passwords() -> None:
    masked = "ENC(80cf731af62c290)"
    codec = Codec("clusterpassword")
    whole = reveal(masked, codec)
    for cut in prefixes(masked):
        try:
            found = reveal(cut, codec)
        except MaskedError:
            continue
        assert found == whole or not cut.startswith("ENC(")


def test_keys_and_trusted_certificates(tmp_path: Path) -> None:
    """Fewer issuers let fewer clients in; a certificate that is cut is never left out without a word."""
    authority = Authority()
    issued = authority.issue("broker")
    data = issued.key_pem() + issued.chain_pem()
    whole = read_pem([(tmp_path, data)], None)
    for length in range(0, len(data), 5):
        try:
            found = read_pem([(tmp_path, data[:length])], None)
        except StoreError:
            continue
        assert b"-----BEGIN" not in data[:length].rpartition(b"-----END")[2]
        assert set(found.trusted) <= set(whole.trusted)


def test_contexts_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "artemis-py" / "contexts.toml"
    Contexts(path, {"here": {"url": "https://a:8161", "user": "ann"}, "there": {"url": "https://b"}}, "there").write()
    whole, text = Contexts.read(), path.read_text()
    for cut in prefixes(text):
        path.write_text(cut)
        try:
            found = Contexts.read()
        except ArtemisError:
            continue
        assert found.current in (None, whole.current)
        assert all(fields.items() <= whole.by_name[name].items() for name, fields in found.by_name.items())


def test_an_empty_file_is_not_in_force(tmp_path: Path) -> None:
    """A program that writes in place on a full disk leaves one."""
    world = World(tmp_path)
    before = world.who()
    world.users.write_text("")
    assert world.who() == before
    assert "is empty" in world.realm.files[0].complaint
    world.roles.write_text("")
    assert world.who() == before
    fresh = PropertiesUsers(world.users, world.roles, tell=world.told.append)
    assert fresh.authenticate(Credentials("bob", "builder")) is None
    with pytest.raises(AuthenticatorError):
        PropertiesUsers(tmp_path / "none", world.roles, tell=world.told.append).read()
