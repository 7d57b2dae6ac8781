"""Whatever clients call things, nothing that the broker or a command prints moves a terminal or forges a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from tests.kit.client import StompSocket, connected
from tests.kit.process import DAYS, configuration, running

pytestmark = pytest.mark.e2e

ODD = "\x1b[31m\n\r\x7f\x9b\u202e\u2028forged"
WRITTEN = ODD.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
"""As a header of STOMP 1.2 has it."""


PAGED = '<address-setting match="#"><max-size-messages>2</max-size-messages></address-setting>'
CORE = "<max-disk-usage>-1</max-disk-usage>"
logged = partial(configuration, core=CORE, settings=PAGED, kept=DAYS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker leaves behind that heard odd text wherever a client may choose it; ``said`` is what it printed."""
    path = tmp_path_factory.mktemp("odd")
    with running(logged(folder=path), path) as broker:
        with StompSocket(broker.port) as client:
            line = ODD.replace("\n", "").replace("\r", "")  # CONNECT has no escapes
            client.raw(f"CONNECT\naccept-version:1.2\nhost:x\nlogin:{line}\nclient-id:{line}\n\n\0".encode())
            client.expect("CONNECTED")
            names = {"durable-subscription-name": WRITTEN, "selector": "a IS NULL"}
            client.ask("SUBSCRIBE", {"id": WRITTEN, "destination": f"/topic/{WRITTEN}", "ack": "client", **names})
            headers = {WRITTEN: WRITTEN, "JMSXGroupID": WRITTEN, "_AMQ_DUPL_ID": WRITTEN, "persistent": "true"}
            client.ask("SEND", {"destination": f"/topic/{WRITTEN}", **headers}, ODD.encode())
            plain = {"persistent": "true", WRITTEN: WRITTEN}
            for number in range(6):
                client.ask("SEND", {"destination": f"/queue/{WRITTEN}", **plain, "number": number}, ODD.encode())
            client.ask("BEGIN", {"transaction": WRITTEN})
            client.ask("COMMIT", {"transaction": WRITTEN, "_AMQ_DUPL_ID": WRITTEN})
            client.send("ACK", {"id": WRITTEN, "receipt": "last"})
            error = client.receive()
            while error.command == "MESSAGE":
                error = client.receive()
            assert error.command == "ERROR"
            assert error.body.decode().isprintable(), error.body
        for refused in (f"SUBSCRIBE\nid:1\ndestination:{WRITTEN}\nselector:a = '{WRITTEN}\n\n\0", f"{ODD[:5]}\n\n\0"):
            with connected(broker.port) as client:
                client.raw(refused.encode())
                assert client.expect("ERROR").body.decode().isprintable()
        cursor = {"lsn": 0, "owner": ODD + "\x00"}
        assert broker.ask("PUT", "/log/cursors/odd", cursor).status == 201
        assert broker.stop() == 0
        (path / "said").write_text(broker.said, "utf-8")
    return path


def check_printed(text: str) -> None:
    for line in text.split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.startswith("forged")


def test_what_the_broker_says(folder: Path) -> None:
    said = (folder / "said").read_text("utf-8")
    check_printed(said)
    assert said.count("forged") > 3, "nothing of it was told"


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize(
    "command",
    [
        ["journal", "dump", "journal"], ["journal", "verify", "journal"], ["pages", "list", "paging"],
        ["pages", "dump", "PAGE"], ["cursor", "ls", "journal"],
    ],
    ids=lambda command: " ".join(command[:2]),
)  # fmt: skip
def test_what_commands_print(
    folder: Path, command: Sequence[str], form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = next((folder / "paging").rglob("*.page"))
    place = str(page if command[2] == "PAGE" else folder / command[2])
    if command[0] == "cursor":
        arguments = [*command[:2], "--journal", place, *(["--json"] if form == "json" else [])]
    else:
        arguments = [*command[:2], place, *([] if command[1] == "verify" else ["--format", form])]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    check_printed(printed.out)
    check_printed(printed.err)
    assert "forged" in printed.out
    if form == "json" and command[1] != "verify":
        assert json.dumps(ODD)[1:-1] in json.dumps([json.loads(line) for line in printed.out.splitlines()])


@pytest.mark.parametrize("form", ["text", "json"])
def test_explain_and_check(folder: Path, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broker.xml"
    odd = ODD.replace("\x1b", "").replace("\r", "&#13;").replace("\n", "&#10;")
    file.write_text(
        logged(folder=tmp_path).replace("max-size-messages>2<", f"dead-letter-address>{odd}<").replace(
            "</max-size-messages>", "</dead-letter-address>"
        ),
        "utf-8",
    )  # fmt: skip
    assert main(["explain", f"{ODD}::{ODD}", "--config", str(file), "--format", form]) == 0
    properties = tmp_path / "more.properties"
    properties.write_text(f"maxDiskUsage={ODD[:4]}{ODD[4:]}\nno.such.thing\\u001b[31m=1\n", "utf-8")
    main(["check", str(file), "--properties", str(properties), "--format", form])
    main(["run", str(tmp_path / ODD.replace("/", ""))])
    main([ODD])
    printed = capsys.readouterr()
    check_printed(printed.out)
    check_printed(printed.err)
