"""Users and roles files: any bytes are a table or a reason, and what one file says is what editing it leaves."""

from __future__ import annotations

import random

from artemis_py.security.masked import Codec, MaskedError
from artemis_py.security.users.passwords import hashed, stored_password
from artemis_py.security.users.tables import PropertiesText, TableError, roles_table, users_table
from tests.fuzz.fuzzing import Fuzzer, Input, outcome_of

HASH = str(hashed("right", 1))
LINES = (
    "sam = right", "sam=ENC(1:00:00)", f"sam={HASH}", "my\\ user: x", "# a comment", "! another", "", "a", "a=b\\", "=",
    "roles = sam,bob", "roles = sam, bob", "r=", "r=,,", "\\u00e9 = \\u20ac", "\\u00", "\\uZZZZ = 1", "a\\=b\\:c = d",
    "sam|SHA256=ENC(a:1:b:c)", "sam = ENC()", "sam = ENC(-1:00:00)", "sam = ENC(99999999999999999999:00:00)",
    "sam=ENC(", "sam = ENC(1:0:0)", "sam=ENC(0:00:00)", "sam=ENC(1::)",
)  # fmt: skip
TOKENS = (
    *(line.encode() for line in LINES), b"\n", b"\r", b"\r\n", b"\\", b"\\\n", b"=", b":", b" ", b"\t", b"\f", b"\0",
    b"\xff", b"ENC(", b")", b"\\u", b"3bdfd94fe8cdf710e7fefa72f809ea90", b"-41e444c3ed07d6dd", b",", b"#",
)  # fmt: skip


def document(rng: random.Random) -> bytes:
    """A few lines."""
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    return "".join(rng.choice(LINES) + end for _ in range(rng.randrange(6))).encode()


def judge(one: Input) -> str:
    """Both tables are read or refused with a line; an edit changes its own entry alone."""
    outcomes = [_users(one.data), _roles(one.data), _masked(one.data)]
    try:
        text = PropertiesText(one.data)
    except TableError:
        return " ".join(outcomes)
    before = _entries(text)
    text.put("new user", "a=b, c")
    after = _entries(PropertiesText(text.data))
    assert after == before | {"new user": "a=b, c"}, "an edit changed other entries"
    text.remove("new user")
    left = _entries(PropertiesText(text.data))
    assert left == {key: value for key, value in before.items() if key != "new user"}
    return " ".join(outcomes)


def _entries(text: PropertiesText) -> dict[str, str]:
    """All but nothing, which a backslash at the end of a file is for Java."""
    return {entry.key: entry.value for entry in text.entries() if entry.key or entry.value}


def _users(data: bytes) -> str:
    try:
        table = users_table(data)
    except TableError as error:
        return outcome_of(error)
    kinds = set()
    for stored in table.passwords.values():
        kinds.add(type(stored).__name__)
        assert HASH not in repr(stored), "a hash in a repr"
    return f"{len(table.passwords)} {sorted(kinds)}"


def _roles(data: bytes) -> str:
    try:
        return f"{len(roles_table(data).by_user)} roles"
    except TableError as error:
        return outcome_of(error)


def _masked(data: bytes) -> str:
    text = data.decode("latin-1").strip()
    stored = stored_password(text)
    assert text not in repr(stored) or len(text) < 30, "a password in a repr"
    try:
        Codec("key").decode(text)
    except MaskedError as error:
        refusal = str(error)
    else:
        return f"{type(stored).__name__} revealed"
    assert refusal.isprintable(), "an error that is not a line of text"
    # A shorter text may be part of a word of the sentence.
    assert len(text) < 12 or text not in refusal, "a masked password in an error"
    return type(stored).__name__


USER_FILES = Fuzzer("users", document, lambda _: judge, TOKENS)
