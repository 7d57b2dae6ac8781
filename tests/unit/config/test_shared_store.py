"""``ha-policy``: which pairs there are, and what the file or the properties say about this one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.config.reader import loads
from artemis_py.config.settings import SharedStoreConfig
from artemis_py.errors import ConfigError
from tests.kit.documents import document

STOMP = '<acceptors><acceptor name="s">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>'


def read(inside: str, *properties: Path, core: str = "") -> tuple[SharedStoreConfig | None, list[str]]:
    policy = f"<ha-policy>{inside}</ha-policy>" if inside else ""
    config = loads(document(policy + STOMP + core), properties=properties)
    return config.shared_store, [each.message for each in config.notices]


@pytest.mark.parametrize(("role", "is_backup"), [("primary", 0), ("master", 0), ("backup", 1), ("slave", 1)])
def test_the_parts_of_a_pair(role: str, is_backup: bool) -> None:
    part, notices = read(f"<shared-store><{role}/></shared-store>")
    assert part is not None
    assert part.is_backup == is_backup
    assert (part.failover_on_shutdown, part.allow_failback, part.restart_backup) == (False, True, True)
    assert notices == []


def test_the_settings_of_a_backup() -> None:
    inside = (
        "<allow-failback>false</allow-failback><failback-delay>7</failback-delay>"
        "<failover-on-shutdown>true</failover-on-shutdown><restart-backup>false</restart-backup>"
    )
    part, notices = read(f"<shared-store><backup>{inside}</backup></shared-store>")
    assert part is not None
    assert (part.failover_on_shutdown, part.allow_failback, part.restart_backup) == (True, False, False)
    assert part.origin.line == 3
    assert notices == ["1 setting tunes the internals of Artemis and has no effect here: failback-delay (3)"]


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        ("<replication><primary><group-name>g</group-name></primary></replication>", "replication"),
        ("<shared-store><colocated><max-backups>2</max-backups></colocated></shared-store>", "colocated"),
        ("<primary-only><scale-down/></primary-only>", "primary-only"),
    ],
)
def test_other_policies_have_no_effect(inside: str, name: str) -> None:
    part, notices = read(inside)
    assert part is None
    assert [text.partition(" is ignored: ")[0] for text in notices] == [name]


def test_a_backup_that_would_scale_down() -> None:
    part, notices = read(
        "<shared-store><backup><scale-down><enabled>true</enabled></scale-down></backup></shared-store>"
    )
    assert part is not None
    assert notices == ["scale-down is ignored: this broker is a single node"]


def test_a_pair_without_a_store_is_refused() -> None:
    with pytest.raises(ConfigError, match="shared-store without persistence-enabled: there is no store to share"):
        read("<shared-store><backup/></shared-store>", core="<persistence-enabled>false</persistence-enabled>")


def test_the_document_shows_a_pair() -> None:
    """docs/deploy.md, as it stands there."""
    text = (Path(__file__).parents[3] / "docs" / "deploy.md").read_text("utf-8")
    shown = re.findall(r"^```xml\n<ha-policy>\n(.*?)</ha-policy>\n```$", text, re.DOTALL | re.MULTILINE)
    read_parts = [read(inside) for inside in shown]
    assert [part and (part.is_backup, part.failover_on_shutdown) for part, _ in read_parts] == [
        (False, True),
        (True, True),
    ]
    assert all(notices == [] for _, notices in read_parts)


def test_properties(tmp_path: Path) -> None:
    file = tmp_path / "over.properties"

    def laid_over(*lines: str, inside: str = "") -> tuple[SharedStoreConfig | None, list[str]]:
        file.write_text("\n".join(f"HAPolicyConfiguration{line}" for line in lines), "utf-8")
        return read(inside, file)

    part, notices = laid_over("=SHARED_STORE_PRIMARY", ".failoverOnServerShutdown=true", ".waitForActivation=true")
    assert part is not None
    assert (part.is_backup, part.failover_on_shutdown, notices) == (False, True, [])
    part, notices = laid_over("=SHARED_STORE_BACKUP", ".allowFailBack=false", ".restartBackup=false")
    assert part is not None
    assert (part.is_backup, part.allow_failback, part.restart_backup, notices) == (True, False, False, [])
    backup = "<shared-store><backup><failover-on-shutdown>true</failover-on-shutdown></backup></shared-store>"
    part, _ = laid_over(".failoverOnServerShutdown=-", inside=backup)
    assert part is not None
    assert not part.failover_on_shutdown
    assert laid_over("=-", inside=backup)[0] is None
    part, notices = laid_over("=REPLICATION_PRIMARY_LOCK_MANAGER", ".groupName=x")
    assert part is None
    assert notices[0].startswith("HAPolicyConfiguration is ignored: two brokers can be a pair only by shared-store")
    assert "'groupName' has no meaning there" in notices[1]
    assert "wrong value" in laid_over("=TWO_OF_US")[1][0]
