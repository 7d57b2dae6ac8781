"""No password is shown, wherever it stands and however badly it is written."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from artemis_py.cli import check
from artemis_py.config.problems import Problems, nearest
from artemis_py.config.reader import loads
from artemis_py.config.secrets_in_text import masked, masked_line
from artemis_py.config.tables.declarations import Origin
from artemis_py.errors import ConfigError
from tests.kit.documents import document


@pytest.mark.parametrize(
    "text",
    [
        "tcp://user:geheim@host:1",
        "tcp://user:ge@geheim@host:1",
        "tcp://user:ge/geheim@host:1",
        "(tcp://a:1,tcp://user:geheim@host:1)",
        "keyStorePassword=geheim;x=1",
        "keyStorePassword=a,geheim&x=1",
        "keyStorePassword = a geheim",
        "keyStorePasswrod=geheim",
        "trustStorePwd=?geheim",
        '<cluster-connection passcode="geheim"/>',
        "<cluster-passwrod>geheim</cluster-passwrod>",
        '<property key="password" value="geheim"/>',
        "<property value='geheim' key='password'/>",
        '<setting name="connectionPassword" value="geheim',
        "tcp://user:ge?geheim@host:1",
        "tcp://me@example.com:geheim@host:1",
        "tcp://user:it's geheim@host:1",
        "jdbc:oracle:thin:scott/geheim@host",
        "keyStorePassword=a&#38;geheim;x=1",
        'keyStorePassword="a"geheim"',
        "tcp://host:1?pass=geheim",
        "<cluster-password><![CDATA[a<geheim]]></cluster-password>",
        "<cluster-password>a<!-- b -->geheim</cluster-password>",
        '<property key="password" value="a>geheim"/>',
        '<property key="password" value="a<geheim"/>',
        '<property key="password" value=geheim/>',
    ],
)
def test_a_password_is_masked(text: str) -> None:
    assert "geheim" not in masked(text)
    assert "****" in masked(text)


@pytest.mark.parametrize(
    "text", ["tcp://localhost:61613?protocols=STOMP", '<property key="size" value="5"/>', "found 'a@b'", "token > 5"]
)
def test_what_is_no_password_is_not(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("clusterPassword: geheim", 1),
        ("clusterPassword geheim", 1),
        ('acceptorConfigurations.a."keyStorePassword"=a;geheim', 1),
        ('{"x": 1,\n"clusterPassword": "geheim" "y"}', 2),
        ("<a>\n<cluster-password>\ngeheim</cluster-password>", 3),
        ('<a>\n<property key="password"\n\n value="geheim"/>', 4),
        ('<a>\n<property value="geheim"\n key="password"/>', 2),
        ("<a>\n<cluster-password><!-- x -->\ngeheim</cluster-password>", 3),
        ("<a>\n<cluster-password><![CDATA[\ngeheim]]></cluster-password>", 3),
        ("<a>\n<acceptor>tcp://user:\ngeheim@host:1</acceptor>", 3),
        ("a=1\nclusterPassword=\\\n  geheim", 3),
        ("a=1\nclusterPass\\\nword=geheim", 3),
        ('{"x": 1,\n"clusterPassword":\n"geheim" "y"}', 3),
        ("x.token: geheim", 1),
    ],
)
def test_a_line_shows_no_password(text: str, line: int) -> None:
    assert "geheim" not in masked_line(text.split("\n"), line)


def test_a_line_behind_a_password_is_shown() -> None:
    rows = ["<core><cluster-password>", "geheim", "</cluster-password>", "<name>x</name>"]
    assert masked_line(rows, 4) == "<name>x</name>"
    assert masked_line(["clusterPassword=\\", "geheim", "name=x"], 3) == "name=x"
    assert masked_line(["<a>", "", '<connection password="geheim"/> <name>x</name>'], 3).endswith("<name>x</name>")


@pytest.mark.parametrize("word", ["a", "password", "<", "<password", "//", "//a:", "password='", "value='"])
def test_long_texts_cost_as_much_as_they_are_long(word: str) -> None:
    """What looked back over a whole text for the beginning of a name took minutes for these."""
    many = word * (300_000 // len(word))
    problems = Problems()
    problems.warning("left-out", Origin("a", 1), many, value=many)
    assert len(problems.found[0].message) <= 400
    assert masked_line([many], 1)
    assert nearest(many, ["max-size-bytes"]) is None


def test_check_shows_no_password_of_any_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    xml = tmp_path / "broker.xml"
    xml.write_text(
        document(
            '<broker-plugins><broker-plugin class-name="x"><property key="password" value="geheim" y=""/>'
            "</broker-plugin></broker-plugins>\n<cluster-pasword>geheim</cluster-pasword>"
        )
    )
    over = tmp_path / "over.properties"
    over.write_text("clusterPasword geheim\nacceptorConfigurations.a.parms.keyStorePassword: geheim")
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    assert check.run(parser.parse_args([str(xml), "--properties", str(over)])) == 2
    said = capsys.readouterr().out
    assert "did you mean 'clusterPassword'?" in said
    assert "geheim" not in said


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_a_line_is_shown_in_the_encoding_of_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    xml = tmp_path / "broker.xml"
    xml.write_bytes('<café y="1"><a key="password" value="geheim"/></b>'.encode(encoding))
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    assert check.run(parser.parse_args([str(xml)])) == 2
    said = capsys.readouterr().out
    assert '<café y="1"><a key="password" value=****/></b>' in said
    assert "geheim" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<a>" * 300, "at most 256 levels"),
        ('<a b="' + "x" * 11_000_000 + '"/>', "10,000,000 characters"),
        ("<a>]]></a>", "]]&gt;"),
        ("<a><?xx </a>", "a <? has no ?>"),
        ('<a xmlns:xml="x"/>', "one that XML keeps for itself"),
        ('<?xml version="1.0" standalone="y"?><a/>', "neither yes nor no"),
        ("<a>&#xzz;</a>", "not a hexadecimal number"),
    ],
)
def test_the_parser_speaks_in_our_words(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loads(text)
    assert words in refused.value.problems[0].message
    assert not any("XML_PARSE_HUGE" in each.message or "ERR_" in each.message for each in refused.value.problems)
