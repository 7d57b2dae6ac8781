"""Splits a login.config into words, by the rules of Java's ``StreamTokenizer`` as ``ConfigFile`` sets it up.

Words are letters, digits and ``. _ $ - *``, but begin with none of ``0-9 . -``: Java reads numbers there and then
refuses them. A single ``/`` begins a comment, as ``//`` does; if nothing follows it, the next line is the comment. A
string without an end ends with its line, a comment with the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from artemis_py.config.problems import Problems
from artemis_py.config.tables.entities import Origin

WORD: Final = "word"
STRING: Final = "string"
END: Final = "the end of the file"

_BLANK: Final = re.compile(r"[\x00-\x20]+")
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n\r]*|/(?!\*).?[^\n\r]*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_$*\xa0-\U0010ffff][A-Za-z0-9._$*\-\xa0-\U0010ffff]*")
_STRING: Final = re.compile(r'"((?:[^"\\\n\r]|\\.)*)"?', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """A word, a string (``text`` is without quotes), a single character, or the end; ``line`` counts from 1."""

    kind: str
    text: str
    line: int


def tokens_of(text: str, file: str, problems: Problems) -> Iterator[Token]:
    """Yield the tokens of a file and then its end. What no file may contain ends it early, after an error."""
    place, line = 0, 1
    while place < len(text):
        blank = _BLANK.match(text, place) or _COMMENT.match(text, place)
        if blank is not None:
            line += _lines_in(blank[0])
            place = blank.end()
            continue
        found = _WORD.match(text, place)
        if found is not None:
            yield Token(WORD, found[0], line)
        else:
            found = _STRING.match(text, place)
            if found is not None:
                yield Token(STRING, _ESCAPE.sub(_unescaped, found[1]), line)
                line += _lines_in(found[0])
        if found is not None:
            place = found.end()
            continue
        character = text[place]
        if not _is_plain(text, place, Origin(file, line), problems):
            return
        yield Token(character, character, line)
        place += 1
    yield Token(END, END, line)


def _lines_in(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _is_plain(text: str, place: int, origin: Origin, problems: Problems) -> bool:
    """Is the next character one that stands for itself? Otherwise the reason why not is added."""
    character = text[place]
    if character == "'":
        problems.error(origin, 'strings are written in "…", not in single quotes')
    elif character in "0123456789.-":
        problems.error(origin, 'what begins with a digit, a point or a minus is a number for Java; write "…" around it')
    else:
        return True
    return False


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 8)) if found[1] else _ESCAPES.get(found[2], found[2])
