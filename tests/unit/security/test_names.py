"""The name in a certificate is the text that Java makes of it; names in files are compared by their parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.security.certificate import parts_of, subject_of
from tests.unit.security.certificates import certificate

# The second column was printed by Java 17: X509Certificate.getSubjectDN().getName().
OF_JAVA = [
    (
        ("C=AMQ", "ST=AMQ", "L=AMQ", "O=ActiveMQ", "OU=Artemis", "CN=ActiveMQ Artemis Client"),
        "CN=ActiveMQ Artemis Client, OU=Artemis, O=ActiveMQ, L=AMQ, ST=AMQ, C=AMQ",
    ),
    (("O=Shop, Inc.", "CN=a+b"), 'CN="a+b", O="Shop, Inc."'),
    (("O= lead", "CN=trail "), 'CN="trail ", O=" lead"'),
    (("O=two  blanks", "CN=x"), 'CN=x, O="two  blanks"'),
    (('O=say "hi"', "CN=back\\slash"), 'CN="back\\\\slash", O="say \\"hi\\""'),
    ((("OU=x", "CN=multi"), "UID=u1"), "UID=u1, OU=x + CN=multi"),
    (("DC=org", "DC=example", "CN=Zoë Müller"), "CN=Zoë Müller, DC=example, DC=org"),
    (("EMAILADDRESS=a@b.example", "CN=m"), "CN=m, EMAILADDRESS=a@b.example"),
    (("T=Dr", "SERIALNUMBER=5", "DNQ=q", "OID.2.5.4.65=nick"), "OID.2.5.4.65=nick, DNQ=q, SERIALNUMBER=5, T=Dr"),
    (("CN=#hash", "O=semi;colon", "OU=a<b>c", "L=eq=uals"), 'L="eq=uals", OU="a<b>c", O="semi;colon", CN="#hash"'),
    (("CN=",), "CN="),
]


@pytest.mark.filterwarnings("ignore:Attribute's length")
@pytest.mark.parametrize(("rdns", "text"), OF_JAVA)
def test_the_text_of_java(rdns: tuple[str | tuple[str, ...], ...], text: str) -> None:
    assert subject_of(certificate(*rdns)).text == text


@pytest.mark.parametrize(
    "text",
    [
        "CN=Mill, OU=Partners, O=Shop",
        "CN=Mill,OU=Partners,O=Shop",
        "cn=Mill , ou=Partners;o=Shop",
        'CN="Mill", OU=Partners, O=Shop',
        "2.5.4.3=Mill, OID.2.5.4.11=Partners, O=Sh\\6fp",
        "CN=M\\ill, OU=Partners, O=Shop ",
    ],
)
def test_spellings_of_one_name(text: str) -> None:
    assert parts_of(text) == (("CN", "Mill"), ("OU", "Partners"), ("O", "Shop"))


@pytest.mark.parametrize("text", ["", "Mill", "CN=Mill,", "CN=Mill, Partners", 'CN="Mill', "CN=a\\", "=x"])
def test_what_is_no_name(text: str) -> None:
    assert parts_of(text) is None


def test_names_that_differ() -> None:
    name = parts_of("CN=a, OU=b")
    assert parts_of("OU=b, CN=a") != name  # the order counts
    assert parts_of("CN=A, OU=b") != name  # so does the case of a value
    assert parts_of("CN=a + OU=b") != name
    assert parts_of('CN="a, OU=b"') != name


_VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)


@given(st.lists(st.tuples(st.sampled_from(["CN", "O", "OU", "L"]), _VALUES), min_size=1, max_size=3))
def test_nobody_slips_a_part_into_the_value_of_another(parts: list[tuple[str, str]]) -> None:
    name = subject_of(certificate(*(f"{keyword}={value}" for keyword, value in parts)))
    assert parts_of(name.text) == name.parts == tuple(reversed(parts))


@given(st.text(alphabet='CNOU=,;+"\\ #.019a<', max_size=40))
def test_any_text_is_a_name_or_not(text: str) -> None:
    parts_of(text)
