"""Small configurations for tests, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from artemis_py.config.reader import loads
from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ConfigError, Problem

NO_LOGINS = "<security-enabled>false</security-enabled>"
"""Below ``core``: the broker asks nobody for a login."""


def document(core: str) -> str:
    """Wraps the inside of ``core``, which begins on line 3."""
    return (
        f'<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n{core}\n</core>\n</configuration>\n'
    )


def broker_xml(folder: Path, core: str) -> Path:
    """A file with the inside of ``core``."""
    file = folder / "broker.xml"
    file.write_text(document(core), "utf-8")
    return file


def load_core(core: str, environ: Mapping[str, str] | None = None) -> BrokerConfig:
    """Reads the inside of ``core``."""
    return loads(document(core), environ=environ or {})


def problems_of(core: str, environ: Mapping[str, str] | None = None) -> list[Problem]:
    """Every problem of the inside of ``core``, whether it is refused or not; but not that it opens no port."""
    try:
        return [problem for problem in load_core(core, environ).notices if problem.code != "no-port"]
    except ConfigError as error:
        return error.problems


def errors_of(core: str, environ: Mapping[str, str] | None = None) -> list[Problem]:
    """The problems for which the inside of ``core`` is refused."""
    return [problem for problem in problems_of(core, environ) if problem.severity == "error"]


def warnings_of(core: str) -> list[str]:
    """The warnings and notes of the inside of ``core``."""
    return [str(problem) for problem in problems_of(core) if problem.severity != "error"]


def setting(inside: str, match: str = "#") -> str:
    """One address-setting inside address-settings; ``inside`` stands on line 3 with the rest."""
    return f'<address-settings><address-setting match="{match}">{inside}</address-setting></address-settings>'


def settings(*pairs: tuple[str, str]) -> str:
    """Address-settings from pairs of match and inside, each on a line of its own from line 4."""
    inside = "".join(f'\n<address-setting match="{match}">{body}</address-setting>' for match, body in pairs)
    return f"<address-settings>{inside}</address-settings>"


def queue(attributes: str = "", inside: str = "", address: str = "a") -> str:
    """One queue ``q`` on an anycast address."""
    return (
        f'<addresses><address name="{address}"><anycast><queue name="q" {attributes}>{inside}</queue></anycast>'
        "</address></addresses>"
    )


def divert(inside: str, name: str = "d") -> str:
    """One divert."""
    return f'<diverts><divert name="{name}">{inside}</divert></diverts>'


def acceptor(uri: str, name: str = "a") -> str:
    """One acceptor."""
    return f'<acceptors><acceptor name="{name}">{uri}</acceptor></acceptors>'
