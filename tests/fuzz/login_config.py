"""login.config: any file is read or refused with a place in it, and what is read decides about any login."""

from __future__ import annotations

import random
from pathlib import Path

from artemis_py.config.problems import Problems
from artemis_py.config.tables.declarations import NOWHERE
from artemis_py.errors import AuthenticatorError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login_config import FLAGS, read_login_config
from artemis_py.security.login_modules import ModuleStack, Stacked, make_module
from tests.fuzz.fuzzing import Fuzzer, Input, Judge, judge_problems, outcome_of

PACKAGE = "org.apache.activemq.artemis.spi.core.security.jaas."
MODULES = ("PropertiesLoginModule", "GuestLoginModule", "ExternalCertificateLoginModule", "LDAPLoginModule", "X", "")
DOMAINS = ("activemq", "other", "a-b", "activemq-cert")
OPTIONS = (
    'org.apache.activemq.jaas.properties.user="users.properties"',
    'org.apache.activemq.jaas.properties.role="roles.properties"',
    'org.apache.activemq.jaas.properties.user="none.properties"',
    "org.apache.activemq.jaas.guest.user=someone",
    'org.apache.activemq.jaas.guest.role="guests"',
    "org.apache.activemq.jaas.properties.password.codec=a.B",
    "credentialsInvalidate=true",
    "reload=true",
    "debug=false",
    'baseDir="${somewhere}"',
    'a="${no}"',
    'a="${b"',
    'a="${{b}}"',
    'a="\\u0041\\101\\n"',
    "a='b'",
    "a=5",
)
LOGINS = (
    Credentials("sam", "right"),
    Credentials("sam", "wrong"),
    Credentials(None, None),
    Credentials("", ""),
    Credentials("sam", None),
)
WORDS = (
    *DOMAINS, *OPTIONS, *FLAGS, *(PACKAGE + module for module in MODULES), "{", "}", ";", "};", "=", '"', "/*", "*/",
    "//", "${", "${}", "${a", "\\", "\n", "\r", "\t", "\x00", "5", "-", ".", "é", "\u2028", "REQUIRED", " ",
)  # fmt: skip
TOKENS = (*(word.encode() for word in WORDS), b"\xff\xfe", b"\xff")


def document(rng: random.Random) -> bytes:
    """A few domains with a few modules each."""
    domains = [[_module(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))] for _ in range(rng.choice((0, 1, 1, 2)))]
    return "\n".join(f"{rng.choice(DOMAINS)} {{\n{''.join(modules)}}};\n" for modules in domains).encode()


def _module(rng: random.Random) -> str:
    name = rng.choice(MODULES[:2] * 3 + MODULES)
    flag = rng.choice((*FLAGS, *FLAGS, "Required", "maybe"))
    options = "\n      ".join(rng.sample(OPTIONS, rng.choice((0, 2, 3))))
    if name == MODULES[0] and rng.random() < 0.8:
        options = f"{OPTIONS[0]} {OPTIONS[1]}"
    return f"   {PACKAGE}{name} {flag}\n      {options};\n"


def _open(folder: Path) -> Judge:
    (folder / "users.properties").write_text("sam=right\n")
    (folder / "roles.properties").write_text("boss=sam\n")
    path = folder / "login.config"

    def judge(one: Input) -> str:
        path.write_bytes(one.data)
        problems = Problems()
        found = read_login_config(str(path), {"somewhere": str(folder)}, NOWHERE, problems)
        entries = [entry for domain in found.domains.values() for entry in domain]
        made = [(entry.flag, make_module(entry, folder, problems)) for entry in entries]
        judge_problems(problems.found, one.data)
        stacked = [Stacked(flag, module) for flag, module in made if module is not None]
        outcomes = [_login(ModuleStack(stacked), login) for login in LOGINS]
        assert outcomes[1] == "nobody" or any("Guest" in entry.class_name for entry in entries), "a wrong password"
        for entry in entries:
            assert "right" not in repr(entry), "a secret in a repr"
        if problems.has_errors:
            return outcome_of(ValueError(problems.found[0].message.replace(str(folder), "")))
        return " ".join(outcomes)

    return judge


def _login(stack: ModuleStack, login: Credentials) -> str:
    try:
        identity = stack.authenticate(login)
    except AuthenticatorError:
        return "unknown"
    assert identity is None or isinstance(identity, Identity)
    return "nobody" if identity is None else identity.user


LOGIN_CONFIG = Fuzzer("login.config", document, _open, TOKENS)
