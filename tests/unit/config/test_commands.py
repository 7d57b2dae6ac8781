"""``artemis-py check`` and ``artemis-py explain``, through the functions that the command line calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artemis_py.cli import main
from tests.kit.documents import broker_xml, queue, setting, settings

LIMITED = """<default-max-consumers>3</default-max-consumers><max-size-bytes>10M</max-size-bytes>
<address-full-policy>DROP</address-full-policy>"""
GOOD = (
    "<persistence-enabled>false</persistence-enabled><security-enabled>false</security-enabled>"
    '<acceptors><acceptor name="s">tcp://localhost:61613?protocols=STOMP</acceptor></acceptors>\n'
    + settings(("#", "\n<redelivery-delay>5</redelivery-delay>"), ("orders.#", LIMITED))
    + '\n<addresses><address name="orders.eu"><anycast><queue name="q" ring-size="7"/></anycast></address></addresses>'
    + '\n<security-settings><security-setting match="orders.#"><permission type="send" roles="staff, it"/>'
    + "</security-setting></security-settings>"
)


def test_check_of_a_good_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    assert main.main(["check", file]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: valid (0 errors, 0 warnings, 0 notes)",
        "would listen on localhost:61613 for STOMP (acceptor s)",
    ]


def test_check_of_a_file_with_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, GOOD + "<journal-type>NIO</journal-type><bridges><bridge/></bridges>"))
    assert main.main(["check", file]) == 2  # a bridge without its parts
    metrics = "\n<metrics><jvm-gc>true</jvm-gc></metrics>"
    file = str(broker_xml(tmp_path, f"{GOOD}<journal-type>NIO</journal-type>{metrics}"))
    assert main.main(["check", file]) == 0
    printed = capsys.readouterr().out.splitlines()[-6:]
    assert printed[0].startswith(f"{file}:10: note[tuning]: 1 setting tunes the internals of Artemis")
    assert printed[1].startswith("    10 | <security-settings>")
    assert printed[2].startswith(f"{file}:11: warning[no-effect]: metrics is ignored: ")
    assert printed[3] == "    11 | <metrics><jvm-gc>true</jvm-gc></metrics>"
    assert printed[4] == f"{file}: valid (0 errors, 1 warning, 1 note)"


def test_check_can_be_strict_quiet_and_silenced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, GOOD + "\n<metrics><jvm-gc>true</jvm-gc></metrics>"))
    assert main.main(["check", file, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main.main(["check", file, "--quiet", "--strict"]) == 2
    assert "11: warning[no-effect]: metrics is ignored" in capsys.readouterr().out
    assert main.main(["check", file, "--strict"]) == 2
    assert f"{file}: refused (0 errors, 1 warning, 0 notes)" in capsys.readouterr().out
    assert main.main(["check", file, "--strict", "--silence", "tuning,no-effect"]) == 0
    assert "metrics" not in capsys.readouterr().out
    assert main.main(["check", str(broker_xml(tmp_path, "<naem>x</naem>")), "--quiet", "--silence", "no-effect"]) == 2
    assert "core has no element naem" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main.main(["check", file, "--silence", "no-efect"])
    assert "did you mean 'no-effect'?" in capsys.readouterr().err


def test_check_without_a_file_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("run", "check"):
        assert main.main([command]) == 1
        said = capsys.readouterr().err
        assert f"artemis-py {command} path/to/broker.xml" in said
    assert main.main(["explain", "orders"]) == 1
    assert "artemis-py explain orders --config path/to/broker.xml" in capsys.readouterr().err
    example = said[said.index("<configuration") :]
    file = tmp_path / "broker.xml"
    file.write_text(example)
    assert main.main(["check"]) == 0
    assert "would listen on 127.0.0.1:61613 for STOMP" in capsys.readouterr().out


def test_nothing_shows_a_password_or_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = "tcp://localhost:1?protocols=STOMP;sslEnabled=true;keyStorePassword=geheim;trustStorePassword = geheim;x=1"
    core = (
        f'<acceptors><acceptor name="a">{uri}</acceptor>\n'
        '<acceptor name="b">tcp://user:geheim@localhost:99999999?keyStorePassword=geheim</acceptor></acceptors>\n'
        '<cluster-password x="1">geheim</cluster-password>\n<name y="\u202egeheim&#x9;">z</name>'
    )
    main.main(["check", str(broker_xml(tmp_path, core))])
    said = capsys.readouterr().out
    assert said.count("****") >= 4
    assert "geheim" not in said.replace("\\u202egeheim", "")
    assert "\u202e" not in said
    assert "\\u202e" in said


def test_check_of_a_broken_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, "<naem>x</naem>\n" + queue('ring-size="-2"')))
    assert main.main(["check", file]) == 2
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"{file}:3: error: core has no element naem; did you mean 'name'?",
        "     3 | <naem>x</naem>",
        f"{file}:4: error: ring-size has a wrong value; found '-2'; allowed: -1 (no ring), 0 (keeps nothing) or more",
        "     4 | " + queue('ring-size="-2"'),
        f"{file}: refused (2 errors, 0 warnings, 0 notes)",
    ]
    assert printed.err == ""


def test_check_prints_json_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, setting("<address-full-policy>page</address-full-policy>")))
    assert main.main(["check", file, "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["valid"], found["errors"], found["warnings"]) == (file, False, 1, 0)
    (problem,) = found["problems"]
    assert {name: problem[name] for name in ("severity", "file", "line", "value", "suggestion")} == {
        "severity": "error",
        "file": file,
        "line": 3,
        "value": "page",
        "suggestion": "PAGE",
    }
    assert problem["text"].startswith(f"{file}:3: ")


def test_check_lays_properties_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.properties").write_text("nam=x")
    assert main.main(["check", str(broker_xml(tmp_path, GOOD)), "--properties", str(tmp_path / "x.properties")]) == 0
    assert "x.properties:1: warning[left-out]: property nam is ignored" in capsys.readouterr().out


def test_check_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["check", str(tmp_path / "none.xml")]) == 2
    assert "none.xml: error: " in capsys.readouterr().out


def test_colour_is_for_terminals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    main.main(["check", file])
    assert "\x1b[32mvalid\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main.main(["check", file])
    assert "\x1b" not in capsys.readouterr().out


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    """Returns the printed rows by their first word, in columns."""
    assert main.main(["explain", *arguments]) == 0
    rows: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
        if line.startswith("  "):
            rows[cells[0]] = cells[1:]
    return rows


def test_explain_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    rows = explained(capsys, "orders.eu", "--config", file, "--all")
    assert rows["redelivery-delay"] == ["5 ms", "match #", f"{file}:6"]
    assert rows["default-max-consumers"] == ["3 consumers", "match orders.#", f"{file}:7"]
    assert rows["max-redelivery-delay"] == ["50 ms", "default"]
    assert rows["expiry-delay"] == ["-1", "default"]
    assert rows["slow-consumer-policy"] == ["NOTIFY", "default"]
    assert rows["redistribution-delay"][2].startswith("(ignored: this broker is a single node")
    assert rows["send"] == ["staff, it"]
    assert rows["consume"] == ["nobody"]
    assert "ring-size" not in rows


def test_explain_prints_where_things_are_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    main.main(["explain", "orders.eu::q", "--config", file])
    lines = capsys.readouterr().out.splitlines()
    assert f"address orders.eu ({file}:9; ANYCAST; queues: q)" in lines
    assert f"queue q ({file}:9; ANYCAST)" in lines
    assert f"security (match orders.#, {file}:10; security-enabled is false: everybody may do everything)" in lines
    assert "composed of" in lines
    main.main(["explain", "other::x", "--config", file])
    lines = capsys.readouterr().out.splitlines()
    assert "address other (not declared; shown as auto-creation would create it)" in lines
    assert "queue x (not declared; shown as auto-creation would create it; MULTICAST)" in lines
    assert lines[-1] == "security (no security-setting matches; security-enabled is false: everybody may do everything)"
    secured = str(broker_xml(tmp_path, GOOD.replace("<security-enabled>false</security-enabled>", "")))
    main.main(["explain", "other::x", "--config", secured])
    lines = capsys.readouterr().out.splitlines()
    assert "security (no security-setting matches; nobody may do anything)" in lines
    assert "nobody" in lines[-1]


def test_explain_a_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    rows = explained(capsys, "orders.eu::q", "--config", file, "--all")
    assert rows["ring-size"] == ["7 messages", f"{file}:9"]
    assert rows["max-consumers"] == ["3", "match orders.#", f"{file}:7"]
    assert rows["exclusive"] == ["false", "default"]
    assert rows["enabled"] == ["true", "default"]
    assert {"order:", "distribution:", "acquisition:", "overflow:"} <= set(rows)


AMPS = {
    "delivery-semantics": ("at-least-once", "at-least-once"),
    "lease-period": ("30s", "30000 ms"),
    "leasing": ("strict", "strict"),
    "max-backlog": ("10", "10 messages"),
    "max-per-subscription-backlog": ("5", "5 messages"),
    "max-deliveries": ("3", "3 deliveries"),
    "max-cancels": ("2", "2 cancels"),
    "fairness-model": ("fast", "fast"),
    "file-backed-metadata": ("true", "true"),
}
"""Attributes of AMPS: as written, and as shown."""
COMPOSED = {
    ("distribution", "fast"),
    ("backlog", "up to 5 messages, for each consumer"),
    ("backlog", "10 messages, for all"),
    ("lease", "30000 ms"),
    ("acquisition", "lease until acknowledged"),
    ("dead letters", "after 3 deliveries"),
    ("dead letters", "after 2 cancels"),
    ("overflow", "flow to disk beyond 1000 messages"),
}


@pytest.mark.parametrize("by_setting", sorted(AMPS))
def test_explain_tells_each_attribute_of_amps_and_where_it_comes_from(
    by_setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All on the queue but one, which comes from an address-setting."""
    (word, shown), name = AMPS[by_setting], f"default-{by_setting}"
    written = " ".join(f'{other}="{value}"' for other, (value, _) in AMPS.items() if other != by_setting)
    core = settings(("jobs.#", f"\n<{name}>{word}</{name}>"))
    core += f'\n<addresses><address name="jobs.a"><anycast><queue name="q" {written}/></anycast></address></addresses>'
    file = str(broker_xml(tmp_path, core))
    rows = explained(capsys, "jobs.a::q", "--config", file)
    assert rows[by_setting] == [shown, "match jobs.#", f"{file}:5"]
    assert [rows[other] for other in AMPS if other != by_setting] == [
        [text, f"{file}:6"] for other, (_, text) in AMPS.items() if other != by_setting
    ]
    main.main(["explain", "jobs.a::q", "--config", file, "--json"])
    found = json.loads(capsys.readouterr().out)["queue"]
    attributes = {row["name"]: row for row in found["attributes"]}
    places = {other: (attributes[other]["file"], attributes[other]["line"]) for other in AMPS}
    assert places == {other: (file, 5 if other == by_setting else 6) for other in AMPS}
    assert {(part["axis"], part["choice"]) for part in found["composition"]} >= COMPOSED


def test_explain_shows_what_is_set_and_what_it_is_composed_of_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    main.main(["explain", "orders.eu::q", "--config", file])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("queue q (")
    assert lines[1] == "composed of"
    shown = [line.split()[0] for line in lines if line.startswith("  ")]
    assert "ring-size" in shown
    assert "redelivery-delay" in shown
    assert "max-redelivery-delay" not in shown
    assert any("settings have their defaults (--all shows them)" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("order.eu", "order.eu is not declared; did you mean orders.eu?"),
        ("orders.eu::Q", "queue Q is not declared; did you mean orders.eu::q?"),
        ("q", "there is also a queue q: artemis-py explain orders.eu::q"),
    ],
)
def test_explain_suggests_names(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    main.main(["explain", name, "--config", file])
    wanted = f"{hint} --config {file}" if "artemis-py" in hint else hint
    assert wanted in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", ["", "::", "a::", "::q", "a::b::c"])
def test_explain_refuses_what_is_no_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["explain", name])
    assert "is neither the name of an address nor ADDRESS::QUEUE" in capsys.readouterr().err


def test_explain_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, GOOD))
    assert main.main(["explain", "orders.eu::q", "--config", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    settings_by_name = {row["name"]: row for row in found["settings"]}
    assert settings_by_name["max-size-bytes"] == {
        "name": "max-size-bytes", "value": 10485760, "unit": "bytes", "match": "orders.#", "file": file, "line": 7,
        "default": False, "effect": "honoured", "reason": "",
    }  # fmt: skip
    assert (found["declared"], found["routing_types"], found["queue"]["declared"]) == (True, ["ANYCAST"], True)
    attributes = {row["name"]: row for row in found["queue"]["attributes"]}
    assert (attributes["ring-size"]["value"], attributes["ring-size"]["line"]) == (7, 9)
    assert found["security"]["match"] == "orders.#"
    assert found["security"]["permissions"]["send"] == ["staff", "it"]
    assert {part["axis"] for part in found["queue"]["composition"]} >= {"order", "overflow"}


def test_the_id_cache_of_an_address_falls_back_to_that_of_the_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(broker_xml(tmp_path, "<id-cache-size>7</id-cache-size>"))
    assert explained(capsys, "a", "--config", file)["id-cache-size"] == ["7", f"{file}:3"]


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_broken_file_shows_no_traceback(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(broker_xml(tmp_path, "<name>x</name><name>y</name>"))
    arguments = [command, file] if command == "check" else [command, "a", "--config", file]
    assert main.main(arguments) == 2
    printed = capsys.readouterr()
    assert f"{file}:3: " in printed.out + printed.err
    assert "Traceback" not in printed.out + printed.err


NO_CONFIGURATION = {
    "nothing": None,
    "an empty file": b"",
    "no XML": bytes(range(256)),
    "another root": b"<html/>",
    "a tag never closed": b"<configuration>",
    "a folder": None,
}


@pytest.mark.parametrize("what", NO_CONFIGURATION)
@pytest.mark.parametrize("command", ["run", "check"])
def test_what_is_no_configuration_is_refused(
    tmp_path: Path, what: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, content = tmp_path / "broker.xml", NO_CONFIGURATION[what]
    if content is not None:
        file.write_bytes(content)
    elif what == "a folder":
        file.mkdir()
    assert main.main([command, str(file)]) == 2
    printed = capsys.readouterr()
    assert file.name in printed.err + printed.out
    assert "Traceback" not in printed.err + printed.out
