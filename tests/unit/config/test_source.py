"""Files, includes, encodings, and texts that are no good XML."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from artemis_py.config.reader import load, loads
from artemis_py.config.xml.source import find_doctype, in_our_words
from artemis_py.errors import ConfigError, Problem
from tests.kit.documents import document, load_core

XINCLUDE = 'xmlns:xi="http://www.w3.org/2001/XInclude"'
FRAGMENT = '<addresses xmlns="urn:activemq:core">\n<address name="a">\n<anycast>{}</anycast></address></addresses>'


def refusal(path: Path) -> list[Problem]:
    with pytest.raises(ConfigError) as refused:
        load(path, environ={})
    return refused.value.problems


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def including(path: Path, href: str, inside: str = "") -> Path:
    return write(path, document(f'<name>x</name>\n<xi:include {XINCLUDE} href="{href}">{inside}</xi:include>'))


def test_an_included_file_becomes_part_of_the_tree(tmp_path: Path) -> None:
    write(tmp_path / "parts/addresses.xml", FRAGMENT.format('\n<queue name="q" ring-size="${SIZE:7}"/>'))
    config = load(including(tmp_path / "broker.xml", "parts/addresses.xml"), environ={})
    (queue,) = config.addresses[0].queues
    assert queue.ring_size == 7
    assert (queue.origin.file, queue.origin.line) == (str(tmp_path / "parts/addresses.xml"), 4)
    assert config.origins["name"].line == 3


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    write(tmp_path / "parts/a.xml", FRAGMENT.format('\n<queue name="q"\n  ring-size="-2"/>'))
    problems = refusal(including(tmp_path / "broker.xml", "parts/a.xml"))
    assert [(each.file, each.line) for each in problems if each.severity == "error"] == [
        (str(tmp_path / "parts/a.xml"), 4)
    ]


def test_a_schema_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", FRAGMENT.format('\n\n<queue name="q" ringsize="1"/>'))
    (problem,) = refusal(including(tmp_path / "broker.xml", "a.xml"))
    assert (problem.file, problem.line, problem.suggestion) == (str(tmp_path / "a.xml"), 5, "ring-size")


def test_includes_within_includes_start_at_their_own_file(tmp_path: Path) -> None:
    write(tmp_path / "one/two/queue.xml", '<queue xmlns="urn:activemq:core" name="deep"/>')
    write(tmp_path / "one/a.xml", FRAGMENT.format(f'<xi:include {XINCLUDE} href="two/queue.xml"/>'))
    config = load(including(tmp_path / "broker.xml", "one/a.xml"), environ={})
    assert [queue.name for queue in config.addresses[0].queues] == ["deep"]


def test_a_missing_include_is_reported_with_file_and_line(tmp_path: Path) -> None:
    (problem,) = refusal(including(tmp_path / "broker.xml", "nowhere.xml"))
    assert (problem.file, problem.line) == (str(tmp_path / "broker.xml"), 4)
    assert "nowhere.xml cannot be read" in problem.message


def test_a_fallback_stands_in_for_a_missing_file(tmp_path: Path) -> None:
    fallback = (
        f'<xi:fallback {XINCLUDE}><security-enabled xmlns="urn:activemq:core">false</security-enabled></xi:fallback>'
    )
    assert load(including(tmp_path / "broker.xml", "nowhere.xml", fallback), environ={}).security_enabled is False


def test_a_fallback_is_not_used_for_a_file_that_is_there(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", FRAGMENT.format(""))
    fallback = f'<xi:fallback {XINCLUDE}><xi:include href="missing.xml"/></xi:fallback>'
    assert load(including(tmp_path / "broker.xml", "a.xml", fallback), environ={}).addresses[0].name == "a"


def test_a_file_in_the_working_directory_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "etc/a.xml", FRAGMENT.format('<queue name="ours"/>'))
    write(tmp_path / "a.xml", FRAGMENT.format('<queue name="theirs"/>'))
    path = including(tmp_path / "etc/broker.xml", "a.xml")
    monkeypatch.chdir(tmp_path)
    config = load(path, environ={})
    assert [queue.name for queue in config.addresses[0].queues] == ["ours"]
    assert [(each.line, each.severity) for each in config.notices if "working directory" in each.message] == [
        (4, "note")
    ]
    monkeypatch.chdir(tmp_path / "etc")
    assert not any("working directory" in each.message for each in load(path, environ={}).notices)


def test_a_file_that_includes_itself_is_an_error(tmp_path: Path) -> None:
    problems = refusal(including(tmp_path / "broker.xml", "broker.xml"))
    assert "includes itself" in problems[0].message


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('href="http://example.org/a.xml"', "reads files only"),
        ('href=""', "needs the attribute href"),
        ('parse="text" href="a.xml"', "whole XML files only"),
    ],
)
def test_includes_of_anything_but_files_are_errors(tmp_path: Path, attributes: str, message: str) -> None:
    path = write(tmp_path / "broker.xml", document(f"<xi:include {XINCLUDE} {attributes}/>"))
    assert [(each.line, message in each.message) for each in refusal(path)] == [(3, True)]


def test_an_included_file_needs_the_namespace(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", "<addresses/>")
    (problem,) = refusal(including(tmp_path / "broker.xml", "a.xml"))
    assert (problem.file, problem.line) == (str(tmp_path / "a.xml"), 1)
    assert "urn:activemq:core" in problem.message


BOMB = """<?xml version="1.0"?>
<!-- a -->
<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
"""


@pytest.mark.parametrize("entity", ["&c;", "plain"])
def test_an_entity_bomb_is_refused(entity: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loads(BOMB + document(f"<name>{entity}</name>"))
    (problem,) = refused.value.problems
    assert (problem.line, "document type" in problem.message) == (3, True)


def test_an_external_entity_is_refused(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", "secret")
    text = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{secret}">]>' + document("<name>&e;</name>")
    problems = refusal(write(tmp_path / "broker.xml", text))
    assert len(problems) == 1
    assert "secret" not in str(problems[0])


def test_a_document_type_in_a_comment_is_none() -> None:
    assert find_doctype("<?xml version='1.0'?>\n<!-- <!DOCTYPE x> -->\n<a><![CDATA[<!DOCTYPE]]></a>") == 0
    assert find_doctype("\n<!DOCTYPE x><a/>") == 2
    assert load_core("<!-- <!DOCTYPE x> --><name>n</name>").name == "n"


def test_an_end_tag_that_is_missing_is_one_problem() -> None:
    """Not one for each element around it."""
    with pytest.raises(ConfigError) as refused:
        loads("<a>\n<b>\n<c>\n<d>\n</c>\n</b>\n</a>")
    assert [(one.line, one.message) for one in refused.value.problems] == [
        (5, "not well-formed XML: <d> of line 4 is closed by </c>")
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("no xml", 1),
        ('<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n<name>x</core></configuration>', 3),
        ("<a>\n&nbsp;</a>", 2),
    ],
)
def test_texts_that_are_not_well_formed(text: str, line: int) -> None:
    with pytest.raises(ConfigError) as refused:
        loads(text)
    assert refused.value.problems[0].line == line
    assert "not well-formed XML" in refused.value.problems[0].message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('<core xmlns="urn:activemq:core"/>', 1, "wrong root element"),
        ('<configuration xmlns="urn:activemq"/>', 1, "there is no element core"),
        ('<configuration xmlns="urn:activemq">\n<core/></configuration>', 2, "core is in urn:activemq"),
        ('<configuration xmlns="urn:activemq">\n<core xmlns=""/></configuration>', 2, "core is in no namespace"),
        ("<broker/>", 1, "wrong root element"),
    ],
)
def test_a_document_without_the_right_frame(text: str, line: int, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loads(text)
    (problem,) = refused.value.problems
    assert (problem.line, problem.message[: len(message)]) == (line, message)


def test_anything_may_stand_beside_core() -> None:
    text = document("<name>n</name>").replace("<core", '<web xmlns="x">text</web><other>y</other><core', 1)
    assert loads(text).name == "n"


def test_an_old_jms_element_is_warned_of() -> None:
    text = document("").replace("<core", '<jms xmlns="urn:activemq:jms"><queue name="x"/></jms><core', 1)
    assert any("element jms" in problem.message and problem.line == 2 for problem in loads(text).notices)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    path = tmp_path / "broker.xml"
    path.write_bytes(f'<?xml version="1.0" encoding="{declared}"?>{document("<name>Grün</name>")}'.encode(encoding))
    assert load(path, environ={}).name == "Grün"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_bytes(document("<name>Grün</name>").encode("iso-8859-1"))
    (problem,) = refusal(path)
    assert str(problem).startswith(f"{path}:3: this line is not valid utf-8: ")
    assert problem.value == "0xfc"


def test_an_encoding_that_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text('<?xml version="1.0" encoding="klingon"?>' + document("<name>x</name>"))
    (problem,) = refusal(path)
    assert problem.value == "klingon"


@pytest.mark.timeout(20)
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (problem,) = refusal(pipe)
    assert "not a regular file" in problem.message
    path = tmp_path / "broker.xml"
    path.write_text(document(f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{pipe}"/>'))
    (problem,) = refusal(path)
    assert (problem.line, "not a regular file" in problem.message) == (3, True)


def test_included_files_have_a_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artemis_py.config.xml.document._INCLUDED_LENGTH_MAX", 150)
    (tmp_path / "part.xml").write_text('<name xmlns="urn:activemq:core">a</name>' + " " * 60)
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="part.xml"/>'
    path = tmp_path / "broker.xml"
    path.write_text(document(f"{include}\n{include}"))
    assert any("together exceed 150 bytes" in problem.message for problem in refusal(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (problem,) = refusal(tmp_path / "broker.xml")
    assert str(problem).startswith(f"{tmp_path / 'broker.xml'}: ")
    (problem,) = refusal(tmp_path)
    assert "is not an Artemis instance" in problem.message


def test_the_line_of_a_start_tag_is_where_it_begins() -> None:
    config = load_core(
        '<addresses><address name="a"><anycast>\n<queue\n  name="q"\n  ring-size="1"/></anycast></address></addresses>'
    )
    assert config.addresses[0].queues[0].origin.line == 4


def test_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_bytes(document("<name>x</name>\n<max-disk-usage>101</max-disk-usage>").replace("\n", "\r\n").encode())
    assert [each.line for each in refusal(path)] == [4]


def test_the_parsers_own_words_are_not_shown() -> None:
    told = in_our_words("ERR_TAG_NAME_MISMATCH", "Opening and ending tag mismatch: core line 3 and unparsable")
    assert told == "<core> of line 3 is closed by something that is not an end tag"
    told = in_our_words("ERR_TAG_NAME_MISMATCH", "Opening and ending tag mismatch: core line 3 and name")
    assert told == "<core> of line 3 is closed by </name>"
