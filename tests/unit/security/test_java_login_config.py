"""Java itself reads files as we do, and lets the same modules decide."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

from artemis_py.config.problems import Problems
from artemis_py.security.identity import Credentials
from artemis_py.security.login_config import LoginConfig, parse_login_config
from artemis_py.security.login_modules import ModuleStack, Stacked
from tests.kit.java import java_says
from tests.unit.security.test_stack import Scripted

PROPERTIES = {"user": "ann", "empty": ""}
PROGRAM = Path(__file__).with_name("LoginConfigs.java")
FLAGS = ("required", "requisite", "sufficient", "optional")
PIECES = (
    *"{};={};={};=", "d", "other", '"two words"', "m.M", "a.b-c_$*", "Required", *FLAGS, '"${user}"',
    '"${no}"',
    '"${empty}"', '"x${{user}}${user}${/}"', '"a\\tb\\101\\q"', '""', '"', "\\", "/", "// end\n",
    "/* in\nside */", "/*",
    "*/", "\n", "\r\n", "\t", "10", "-x", ".y", "'q'", "é", "日", "\x85", "\xa0", "a1.2-3",
)  # fmt: skip
REFUSED_HERE_ALONE = re.compile(r"(?:^|[;/])\s*['0-9.\-;={}\\\x85]")
"""Java takes anything at all for the name of a domain."""


def we_say(text: str) -> str:
    problems = Problems()
    found: LoginConfig = parse_login_config(text, "login.config", PROPERTIES, problems)
    if problems.has_errors:
        return "refused"
    lines: list[str] = []
    for domain in ("d", "other", "two words"):
        for entry in found.domains.get(domain, ()):
            options = sorted(entry.options.items())
            row = [domain, entry.class_name, entry.flag, *(f"{key}={value}" for key, value in options)]
            lines.append("|".join(row) + "\n")
    return "x" + "".join(lines).encode().hex()


def document(dice: random.Random) -> str:
    """A file that is right but for a few pieces."""
    words: list[str] = []
    for domain in dice.sample(["d", "other", '"two words"'], dice.randrange(1, 4)):
        words += [domain, "{"]
        for _ in range(dice.randrange(3)):
            words += ["m.M", dice.choice(FLAGS)]
            for _ in range(dice.randrange(3)):
                words += [dice.choice(["a", "b.c"]), "=", dice.choice(['"${user}"', "word", '"a \\"b\\""', '""', "日"])]
            words.append(";")
        words += ["}", ";"]
    for _ in range(dice.choice((0, 0, 1, 1, 2, 4))):
        place = dice.randrange(len(words))
        words[place : place + dice.randrange(2)] = [dice.choice(PIECES)]
    return dice.choice((" ", "\n", " ")).join(words)


def test_any_file() -> None:
    dice = random.Random(7)
    texts = [document(dice) for _ in range(1_200)]
    texts += ["".join(dice.choices(PIECES, k=dice.randrange(12))) for _ in range(300)]
    accepted = 0
    for text, theirs in zip(texts, java_says(PROGRAM, [text.encode() for text in texts]), strict=True):
        ours = we_say(text)
        accepted += ours != "refused"
        assert ours == theirs or (ours == "refused" and REFUSED_HERE_ALONE.search(text)), repr(text)
    assert accepted > 450


def test_any_flags() -> None:
    words = ("yes", "no", "silent", "fails_at_the_end")
    singles = [(flag, word) for flag in FLAGS for word in words]
    dice = random.Random(8)
    scripts = [list(each) for length in (1, 2) for each in itertools.product(singles, repeat=length)]
    scripts += [dice.choices(singles, k=dice.randrange(3, 6)) for _ in range(500)]
    files: list[bytes] = []
    ours: list[str] = []
    for script in scripts:
        lines = [f'LoginConfigs$Scripted {flag} name="m{n}" word={word};' for n, (flag, word) in enumerate(script)]
        files.append(f"d {{ {' '.join(lines)} }};".encode())
        stack = ModuleStack([Stacked(flag, Scripted(f"m{n}", word)) for n, (flag, word) in enumerate(script)])
        found = stack.authenticate(Credentials(None))
        ours.append("refused" if found is None else ",".join(sorted(role.removesuffix("s") for role in found.roles)))
    assert java_says(PROGRAM, files, "login") == ours
