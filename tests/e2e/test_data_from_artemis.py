"""``artemis-py data imp`` reads what Artemis' ``data exp`` has written: artemis_export.xml is of a real Artemis 2.44.0,
which clients of STOMP, JMS and AMQP had sent to. Of its large body only the beginning is left, and its two times to
come are in 2100.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from artemis_py.cli.data.artemis_xml import ArtemisExport, is_artemis_export
from artemis_py.management.export_format import ExportError
from tests.e2e.data_command import a_broker, data

pytestmark = pytest.mark.e2e

EXPORT = Path(__file__).with_name("artemis_export.xml")
TEXT = base64.b64encode(b"\1" + (6).to_bytes(4, "big") + "é😀".encode("utf-16-le")).decode()


def lines_of(path: Path) -> list[tuple[str, Any]]:
    """What an import sees."""
    with path.open("rb") as file, ArtemisExport(path, file) as export:
        found = [json.loads(line) for line in iter(export.readline, "")]
    return [next(iter(one.items())) for one in found]


def a_file(folder: Path, old: str, new: str) -> Path:
    """The export with a change."""
    text = EXPORT.read_text("utf-8")
    assert old in text
    (folder / "changed.xml").write_text(text.replace(old, new), "utf-8")
    return folder / "changed.xml"


def test_everything_comes_once(tmp_path: Path) -> None:
    with a_broker(tmp_path, "new") as broker:
        done = data("imp", EXPORT, "--url", broker.url)
        told = f"imported 15 messages into 16 places on queues of {broker.url}, and made 11 queues\n"
        assert (done.returncode, done.stdout, done.stderr) == (0, told, "")
        found = {name: row["messageCount"] for name, row in broker.rows("queues").items() if row["messageCount"]}
        wanted = {"orders": 5, "big": 2, "jms": 2, "bytes": 1, "amqp": 1, "dead": 1, "ExpiryQueue": 1, "sub1": 1}
        assert found == {**wanted, "sub2": 2}
        assert "16 places got them in an earlier import" in data("imp", EXPORT, "--url", broker.url).stdout


def test_what_a_message_was() -> None:
    found = {value["id"]: value for kind, value in lines_of(EXPORT) if kind == "message"}
    bodies = {id: base64.b64decode(one["base64"]) for id, one in found.items() if "base64" in one}
    assert bodies[24].decode() == "two coffees, ☕ please"
    assert bodies[26] == b"\x00\x01\xffbytes"
    assert set(bodies[41]) == set(b"x")
    assert found[24]["headers"][:4] == [
        ["destination", "/queue/orders"], ["priority", "4"], ["persistent", "true"], ["destination-type", "ANYCAST"]
    ]  # fmt: skip
    headers = dict(found[32]["headers"])
    assert (headers["reply-to"], headers["correlation-id"], headers["type"]) == ("/queue/answers", "c-1", "shipping")
    assert headers["_AMQ_DUPL_ID"] == "dup-1"
    assert dict(found[30]["headers"])["JMSXGroupID"] == "g1"
    assert (found[30]["priority"], found[30]["expires"][:10]) == (9, "2100-01-01")
    assert found[28]["due"] == {"orders": "2100-01-01T00:00:00.000Z"}
    [amqp] = [one for one in found.values() if one["queues"] == ["amqp"]]
    assert base64.b64decode(amqp["base64"]) == b"test message: 0"
    assert {name for name, _ in amqp["headers"]}.isdisjoint({"JMS_AMQP_HEADER", "NATIVE_MESSAGE_ID"})
    assert not any(name.startswith(("$sys", "activemq")) for one in found.values() for name in one["queues"])


def test_a_text_beyond_the_first_plane(tmp_path: Path) -> None:
    changed = a_file(tmp_path, "AQAAAB50AGUAcwB0ACAAbQBlAHMAcwBhAGcAZQA6ACAAMAA=", TEXT)
    bodies = [base64.b64decode(value["base64"]) for kind, value in lines_of(changed) if kind == "message"]
    assert "é😀" in [body.decode("utf-8", "ignore") for body in bodies]


def test_a_large_body_comes_in_pieces(tmp_path: Path) -> None:
    block = base64.urlsafe_b64encode(b"\xfb\xff" * 400_001).decode()
    path = a_file(tmp_path, "<![CDATA[Z3JvdXBlZA==]]>", f"<![CDATA[{block}]]>\n   <![CDATA[{block}]]>")
    lines = lines_of(path)
    [(at, size_bytes)] = [(at, value["piece_bytes"]) for at, (_, value) in enumerate(lines) if "piece_bytes" in value]
    pieces = [base64.b64decode(value) for kind, value in lines[at + 1 :] if kind == "piece"]
    assert b"".join(pieces) == b"\xfb\xff" * 800_002
    assert (size_bytes, len(pieces)) == (1_600_004, 2)


def test_bodies_of_java_are_told(tmp_path: Path) -> None:
    path = a_file(tmp_path, 'timestamp="1795877609688" type="bytes"', 'timestamp="1795877609688" type="object"')
    with a_broker(tmp_path, "new") as broker:
        done = data("imp", path, "--url", broker.url)
    assert done.returncode == 1
    assert "OPAQUE 1 message of the type object: the body is in an encoding of Java's" in done.stderr


@pytest.mark.parametrize("text", ["<activemq-journal><messages>", "<a><message><body>=</body></message></a>"])
def test_what_is_no_export_of_artemis(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(text)
    with path.open("rb") as file:
        assert is_artemis_export(file)
    with pytest.raises(ExportError, match="this is not an export of Artemis, or not all of it"):
        lines_of(path)
