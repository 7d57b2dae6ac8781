"""The folder of an Artemis instance, made for this test: who gets in, with which roles, and through which port."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from artemis_py.config.reader import load
from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ConfigError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.masked import acceptor_password
from artemis_py.security.realms import open_realms
from tests.unit.security.certificates import certificate

RECORDED = Path(__file__).with_name("instances") / "shop"
BAKER = certificate("O=Shop", "OU=Partners", "CN=Bakery")
STRANGER = certificate("O=Shop", "OU=Partners", "CN=Butcher")
TILL = certificate("OU=Tills", "CN=Till 1")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return shutil.copytree(RECORDED, tmp_path / "shop")


def who(
    config: BrokerConfig, *given: str | None, certificate: bytes | None = None, domain: str | None = None
) -> object:
    """Logs in; returns the user and its sorted roles, None if nobody."""
    user, password = given or (None, None)
    found = open_realms(config).authenticate(Credentials(user, password, certificate, domain))
    return None if found is None else (found.user, sorted(found.roles))


WEB = (
    "this binding is the HTTP acceptor 'web', with a console at /ui/, /metrics and /health; "
    "Artemis' applications do not run here: console"
)


def test_the_files_are_found_and_relative_directories_are_in_the_instance(shop: Path) -> None:
    config = load(shop, environ={})
    assert config.file == str(shop / "etc" / "broker.xml")
    assert config.journal_directory == str(shop / "data" / "journal")
    assert config.large_messages_directory == str(shop / "data" / "largemessages")
    assert [(each.name, each.host, each.port, each.refused) for each in config.acceptors] == [
        ("stomp", "0.0.0.0", 0, None),
        ("tills", "0.0.0.0", 0, None),
        ("web", "localhost", 0, None),
    ]
    told = [(problem.severity, problem.code, problem.message) for problem in config.notices]
    assert told == [
        ("note", "instance", f"/srv/shop/etc//broker.xml does not exist; {shop}/etc/broker.xml is read instead"),
        ("note", "instance", WEB),
    ]


def test_the_retained_log_is_in_the_instance(shop: Path) -> None:
    retained = '<journal-retention-directory period="1">kept</journal-retention-directory>'
    edit(shop, "broker.xml", "<acceptors>", f"{retained}<acceptors>")
    retention = load(shop, environ={}).journal_retention
    assert retention is not None
    assert retention.directory == str(shop / "kept")


def test_a_binding_whose_port_an_acceptor_has(shop: Path) -> None:
    edit(shop, "bootstrap.xml", "${web.port}", "8161")
    edit(
        shop,
        "broker.xml",
        "<acceptors>",
        '<acceptors><acceptor name="h">tcp://localhost:8161?protocols=HTTP</acceptor>',
    )
    config = load(shop, environ={})
    assert [each.name for each in config.acceptors] == ["h", "stomp", "tills"]
    told = [each.message for each in config.notices]
    assert "this binding is left to acceptor 'h', which has the port" in told


def test_a_binding_with_tls(shop: Path) -> None:
    binding = 'uri="https://0.0.0.0" keyStorePath="k.p12" keyStorePassword="ENC(80cf731af62c290)" clientAuth="true"'
    edit(shop, "bootstrap.xml", 'uri="http://localhost:${web.port}"', binding)
    config = load(shop, environ={})
    web = config.acceptors[-1]
    assert (web.name, web.host, web.port, web.params["needClientAuth"]) == ("web", "0.0.0.0", 443, "true")
    assert acceptor_password(config, web, "keyStorePassword") == "guest"


@pytest.mark.parametrize(
    ("user", "password", "found"),
    [
        ("ann", "welcome", ("ann", ["admin", "staff"])),
        ("bob", "open sesame", ("bob", ["staff"])),  # the blank in "night watch, bob" is part of the name
        ("night watch", "night shift", ("night watch", ["guards"])),
        ("ann", "Welcome", None),
        ("bob", "ENC(1024:…)", None),
        ("nobody", "welcome", None),
        ("ann", "", None),  # an empty password is no guest's
        ("ann", None, ("visitor", ["visitors"])),
        (None, None, ("visitor", ["visitors"])),
    ],
)
def test_who_gets_in(user: str | None, password: str | None, found: object) -> None:
    assert who(load(RECORDED, environ={}), user, password) == found


def test_certificates() -> None:
    config = load(RECORDED, environ={})
    assert who(config, certificate=BAKER) == ("baker", ["partners"])
    assert who(config, certificate=certificate("O=Shop", "OU=Partners", "CN=Mill")) == ("mill", ["partners"])
    assert who(config, certificate=certificate("O=x", "OU=Fleet", "CN=Driver 7")) == ("driver", ["fleet"])
    assert who(config, certificate=STRANGER) is None
    assert who(config, "ann", "welcome", certificate=STRANGER) is None  # the other domain decides


def test_the_domain_of_a_port_decides_alone() -> None:
    config = load(RECORDED, environ={})
    assert config.acceptors[1].params["securityDomain"] == "till"
    assert who(config, "ann", "welcome", domain="till") == (
        "ann",
        ["admin", "staff"],
    )  # a required module may be silent
    assert who(config, "ann", "Welcome", domain="till") is None
    assert who(config, certificate=TILL, domain="till") == ("CN=Till 1, OU=Tills", [])
    roles = who(config, certificate=certificate("CN=Till 1"), domain="till")
    assert roles == ("CN=Till 1", ["registers"])  # the module after it gives roles to whom it did not log in itself
    assert who(config, certificate=BAKER, domain="shop") == ("visitor", ["visitors"])


def test_a_user_added_while_it_runs(shop: Path) -> None:
    realms = open_realms(load(shop, environ={}))
    assert realms.authenticate(Credentials("eve", "new")) is None
    with (shop / "etc" / "artemis-users.properties").open("a") as file:
        file.write("\neve = new\n")
    assert realms.authenticate(Credentials("eve", "new")) == Identity("eve", frozenset())


def problems(shop: Path) -> list[str]:
    """Why an instance is refused, each without the folder."""
    with pytest.raises(ConfigError) as refused:
        open_realms(load(shop, environ={}))
    return [str(each).replace(f"{shop}/", "") for each in refused.value.problems if each.severity == "error"]


def edit(shop: Path, file: str, old: str, new: str, count: int = -1) -> None:
    """Replaces a text in a file of the instance."""
    path = shop / "etc" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("bootstrap.xml", 'domain="shop"', 'domain="old-directory"',
         'login.config:33: the login module *LDAPLoginModule is not supported: write <authenticator name="ldap"> into'),
        ("bootstrap.xml", 'domain="shop"', 'domain="shopp"',
         "bootstrap.xml:4: etc/login.config has no modules for the domain shopp, * did you mean 'shop'?"),
        ("broker.xml", "=till", "=tills",
         "broker.xml:10: etc/login.config has no modules for the domain tills, * did you mean 'till'?"),
        ("bootstrap.xml", "jaas-security", "basic-security",
         "bootstrap.xml:4: broker has no element basic-security; did you mean 'jaas-security'?"),
        ("bootstrap.xml", '<jaas-security domain="shop" certificate-domain="shop-tls"/>',
         '<security-manager class-name="com.example.Gate"/>',
         "bootstrap.xml:4: the security manager com.example.Gate is a Java class and cannot run here; use jaas"),
        ("bootstrap.xml", "http://localhost", "localhost",
         "bootstrap.xml:7: wrong uri of a binding; found 'localhost:0'; allowed: http://host:port"),
        ("login.config", "${shop.guest}", "${shop.host}",
         "login.config:14: * refers to ${shop.host}, which has no value; pass -Dshop.host=… in JAVA_ARGS"),
        ("login.config", "reload=true", "org.apache.activemq.jaas.properties.password.codec=com.example.Codec",
         "login.config:8: the password codec com.example.Codec is a Java class and cannot run here"),
        ("login.config", "artemis-users.properties", "users.properties",
         "login.config:6: etc/users.properties cannot be read: No such file or directory"),
        ("login.config", "org.apache.activemq.artemis.spi.core.security.jaas.Guest", "org.apache.activemq.jaas.Guest",
         "login.config:12: the module org.apache.activemq.jaas.GuestLoginModule is another broker's; write org."),
        ("login.config", "spi.core.security.jaas.TextFile", "spi.core.security.jaas.Own",
         "login.config:19: the login module * is not supported: it is a Java class and cannot run here"),
        ("partners.properties", "/CN=Driver [0-9]+", "/\\\\p{Alpha}",
         "login.config:19: etc/partners.properties: line 4: the expression of driver: from * on, Java and Python read"),
    ],
)  # fmt: skip
def test_what_is_refused(shop: Path, file: str, old: str, new: str, told: str) -> None:
    edit(shop, file, old, new, 1)
    (problem,) = problems(shop)
    assert re.match(f"etc/{re.escape(told).replace(re.escape('*'), '.*')}", problem), problem


def test_an_unused_domain_may_have_any_module(shop: Path) -> None:
    open_realms(load(shop, environ={}))  # old-directory has LDAP
    (shop / "etc" / "login.config").unlink()
    assert problems(shop) == ["etc/bootstrap.xml:4: etc/login.config cannot be read: No such file or directory"]


def test_a_folder_that_is_no_instance(tmp_path: Path) -> None:
    (tmp_path / "broker.xml").write_text("")
    with pytest.raises(ConfigError, match=r"has no etc/bootstrap.xml; to run the file in it, name it"):
        load(tmp_path)


def test_an_option_with_a_wrong_name_is_a_warning(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(shop, "login.config", "credentialsInvalidate=true", "credentialInvalidate=true")
    assert main(["check", str(shop)]) == 0
    shown = capsys.readouterr().out
    assert "login.config:13: warning[left-out]: " in shown
    assert "GuestLoginModule has no option credentialInvalidate; did you mean 'credentialsInvalidate'?" in shown
    assert main(["check", "--strict", str(shop)]) == 2


def test_check_tells_of_users_and_hides_passwords(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(shop, "bootstrap.xml", 'domain="shop"', 'domain="old-directory"')
    edit(shop, "login.config", "connectionPassword=drowssap;", "connectionPassword=drowssap")
    assert main(["check", str(shop)]) == 2
    shown = capsys.readouterr().out
    assert f"{shop}: refused (1 error" in shown
    assert "login.config:36: error" in shown
    assert "drowssap" not in shown
    assert "listening" not in shown


def test_explain_reads_an_instance(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "orders", "--config", str(shop)]) == 0
    assert f"{shop}/etc/broker.xml:13" in capsys.readouterr().out


def test_the_basic_security_manager(shop: Path) -> None:
    manager = (
        '<security-manager class-name="org.apache.activemq.artemis.spi.core.security.ActiveMQBasicSecurityManager">'
        '<property key="bootstrapUser" value="ann"/><property key="bootstrapPassword" value="{}"/>'
        '<property key="bootstrapRole" value="staff"/></security-manager>'
    )
    hashed = next(
        line.partition(" = ")[2]
        for line in (shop / "etc" / "artemis-users.properties").read_text().splitlines()
        if line.startswith("bob")
    )
    edit(shop, "bootstrap.xml", '<jaas-security domain="shop" certificate-domain="shop-tls"/>', manager.format(hashed))
    assert who(load(shop, environ={}), "ann", "open sesame") == ("ann", ["staff"])
    assert who(load(shop, environ={}), "bob", "open sesame") is None
    edit(shop, "bootstrap.xml", hashed, "ENC(80cf731af62c290)")
    assert who(load(shop, environ={}), "ann", "guest") == ("ann", ["staff"])
    assert "guest" not in repr(load(shop, environ={}).logins)
    files = manager.replace("bootstrapUser", "bootstrapUserFile").replace("bootstrapRole", "bootstrapRoleFile")
    files = files.replace('"ann"', '"artemis-users.properties"').replace('"staff"', '"artemis-roles.properties"')
    edit(shop, "bootstrap.xml", manager.format("ENC(80cf731af62c290)"), files)
    assert who(load(shop, environ={}), "ann", "welcome") == ("ann", ["admin", "staff"])


ACCESS = """<?xml version="1.0"?>
<restrict>
  <remote><host>127.0.0.1</host></remote>
  <cors>
    <allow-origin>*://Localhost*</allow-origin><allow-origin>http://${shop.guest}.example</allow-origin>
    <strict-checking/><allow-orign>x</allow-orign>
  </cors>
</restrict>
"""
MANAGEMENT = """<?xml version="1.0"?>
<management-context xmlns="http://activemq.org/schema">
  <connector connector-port="1099"/>
  <authorisation>
    <default-access><access method="list*" roles="staff"/><access method="*" roles="admin"/></default-access>
    <role-access><match domain="org.apache.activemq.artemis">
      <access method="get*" roles="staff,guards"/><access method="set*" roles="admin"/></match></role-access>
  </authorisation>
</management-context>
"""


def told_of(config: BrokerConfig, file: str) -> list[str]:
    """The severity and text of what is told of a file."""
    found = [problem for problem in config.notices if problem.file.endswith(file)]
    return [f"{problem.severity} {problem.line}: {problem.message}" for problem in found]


def test_which_pages_may_use_jolokia(shop: Path) -> None:
    assert load(shop, environ={}).web_access is None
    (shop / "etc" / "jolokia-access.xml").write_text(ACCESS)
    config = load(shop, environ={})
    assert config.web_access is not None
    assert (config.web_access.origins, config.web_access.is_strict) == (
        ("*://localhost*", "http://visitor.example"),
        True,
    )
    remote, misspelt = told_of(config, "jolokia-access.xml")
    assert remote.startswith("warning 3: remote is not used: let a firewall say")
    assert misspelt.startswith("warning 6: cors has no allow-orign")
    (shop / "etc" / "jolokia-access.xml").write_text("<restrict><cors>")
    with pytest.raises(ConfigError, match=r"jolokia-access\.xml"):
        load(shop, environ={})


OIDC = r"""
# as Artemis writes it, with a provider
provider = https://id.example.org/realms/shop
client_id = console
response_mode = fragment
scope = openid email profile
redirect_uri = https://broker.example.org:8161/console
code_challenge_method = S256
oidc.rolesPath = resource_access.${client_id}.roles
roleMapping.Hawtio.Admin = amq
roleMapping.night\ watch = guards
ssl.truststore = artemis.jks"""


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("hawtio-oidc.properties", ""),
        ("people.properties", "-Dhawtio.oidcConfig=classpath:people.properties"),
        ("people.properties", "-Dhawtio.oidcConfig=file:${ARTEMIS_INSTANCE_ETC}/people.properties"),
    ],
)
def test_the_provider_of_the_console(shop: Path, name: str, profile: str) -> None:
    edit(shop, "artemis.profile", "-Dshop.guest=visitor", f"-Dshop.guest=visitor {profile}")
    assert load(shop, environ={}).logins.authenticators == ()
    (shop / "etc" / name).write_text(OIDC)
    config = load(shop, environ={})
    [oidc] = config.logins.authenticators
    assert (oidc.name, oidc.origin.line) == ("oidc", 3)
    assert oidc.options == {
        "issuer": "https://id.example.org/realms/shop",
        "client-id": "console",
        "user-claim": "preferred_username",
        "roles-claim": "resource_access.console.roles",
        "role-mapping": "Hawtio.Admin=amq,night watch=guards",
        "scope": "openid email profile",
        "redirect-uri": "https://broker.example.org:8161/console",
    }
    note, unused = told_of(config, name)
    assert note.startswith("note 3: people log in at the console with this provider; STOMP clients, too")
    assert unused.startswith("warning 12: ssl.truststore is not used: write")
    (shop / "etc" / name).write_text(OIDC.replace("provider =", "# provider ="))
    assert load(shop, environ={}).logins.authenticators == ()


def test_a_provider_of_broker_xml_counts(shop: Path) -> None:
    (shop / "etc" / "hawtio-oidc.properties").write_text(OIDC)
    own = '<option name="issuer" value="https://id.example.org/realms/shop"/><option name="client-id" value="own"/>'
    edit(
        shop,
        "broker.xml",
        "<acceptors>",
        f'<authentication><authenticator name="oidc">{own}</authenticator></authentication><acceptors>',
    )
    [oidc] = load(shop, environ={}).logins.authenticators
    assert oidc.options["client-id"] == "own"


FRESH = """<?xml version="1.0"?>
<management-context xmlns="http://activemq.apache.org/schema">
  <authorisation>
    <default-access><access method="list*" roles="amq"/><access method="*" roles="amq"/></default-access>
    <role-access>
      <match domain="org.apache.activemq.artemis">
        <access method="list*" roles="amq"/><access method="browse*" roles="amq"/><access method="*" roles="amq"/>
      </match>
    </role-access>
  </authorisation>
</management-context>
"""
"""As ``artemis create`` makes it."""


def test_the_administrator_of_a_fresh_instance_needs_no_grants(shop: Path) -> None:
    """Whoever could do everything with Artemis' console can here, unless broker.xml says who may."""
    etc = shop / "etc"
    (etc / "management.xml").write_text(FRESH)
    config = load(shop, environ={})
    setting = config.security.setting_for("mops.queue.orders.pause")
    assert setting is not None
    assert (setting.match, dict(setting.roles)) == ("mops.#", {"view": ("amq",), "edit": ("amq",)})
    (told,) = told_of(config, "management.xml")
    assert told.startswith("note 2: amq may see and change everything by Jolokia and the console, as with Artemis")
    (etc / "management.xml").write_text(FRESH.replace('browse*" roles="amq"', 'browse*" roles="amq,staff"'))
    (told,) = told_of(load(shop, environ={}), "management.xml")
    assert "so only amq may; to let the roles of this file do what they could, add: " in told
    (etc / "management.xml").write_text(
        FRESH.replace('<match domain="org.apache.activemq.artemis">', '<match domain="x">')
    )
    setting = load(shop, environ={}).security.setting_for("mops.broker.x")
    assert setting is not None
    assert setting.roles["edit"] == ("amq",), "the default counts"
    text = (etc / "broker.xml").read_text()
    own = '<security-setting match="mops.broker.#"><permission type="view" roles="guards"/></security-setting>'
    (etc / "broker.xml").write_text(text.replace("</security-settings>", f"{own}</security-settings>"))
    assert "mops.#" not in {setting.match for setting in load(shop, environ={}).security.settings}


def test_what_does_the_work_of_management_xml(shop: Path) -> None:
    """A warning while nobody may do what they could with Artemis, and then a note."""
    etc = shop / "etc"
    (etc / "management.xml").write_text(MANAGEMENT)
    connector, warning = sorted(told_of(load(shop, environ={}), "management.xml"))
    assert connector == "note 3: there is no JMX here, so no connector for it is opened"
    assert warning.startswith("warning 2: management.xml has no effect")
    assert warning.endswith(
        'add: <security-setting match="mops.#"><permission type="view" roles="staff,guards"/>'
        '<permission type="edit" roles="admin"/></security-setting>'
    )
    text = (etc / "broker.xml").read_text()
    granted = warning.partition("add: ")[2]
    (etc / "broker.xml").write_text(text.replace("</security-settings>", f"{granted}</security-settings>"))
    assert [each[:7] for each in sorted(told_of(load(shop, environ={}), "management.xml"))] == ["note 2:", "note 3:"]
    (etc / "management.xml").write_text("<management-context")
    assert told_of(load(shop, environ={}), "management.xml") == [
        "note 0: management.xml cannot be read, and has no effect anyway"
    ]
