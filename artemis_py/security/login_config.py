"""Reads login.config, the file in which Artemis names who checks users (JAAS, a part of Java): domains, each a list of
modules with a flag and options.

The syntax is that of the JDK's ``ConfigFile``::

    domain {
       module.Class required|requisite|sufficient|optional
          option=word option="string" … ;
    };

``${name}`` in the value of an option is a system property; an unknown one, or an empty result, makes Java refuse the
whole file, and so it is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NoReturn, final

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.tables.declarations import Origin
from artemis_py.config.xml.source import load_text
from artemis_py.errors import ArtemisError

REQUIRED: Final = "required"
REQUISITE: Final = "requisite"
SUFFICIENT: Final = "sufficient"
OPTIONAL: Final = "optional"
FLAGS: Final = (REQUIRED, REQUISITE, SUFFICIENT, OPTIONAL)

OTHER: Final = "other"
"""Java takes this domain where the one it looks for does not exist."""

_PLACEHOLDER: Final = re.compile(r"\$\{\{.*?\}\}|\$\{([^{}][^}]*|)\}", re.DOTALL)


# ---- words, by the rules of Java's StreamTokenizer as ConfigFile sets it up ----------------------
#
# Words are letters, digits and ``. _ $ - *``, but begin with none of ``0-9 . -``: Java reads numbers there and then
# refuses them. A single ``/`` begins a comment, as ``//`` does; if nothing follows it, the next line is the comment. A
# string without an end ends with its line, a comment with the file.

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


def _tokens_of(text: str, file: str, problems: Problems) -> Iterator[Token]:
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleEntry:
    """One module of a domain. Options may be secret: no ``repr`` has them."""

    class_name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)
    option_origins: Mapping[str, Origin] = field(repr=False)
    origin: Origin


@final
@dataclass(frozen=True, slots=True)
class LoginConfig:
    """All domains of a file, each with its modules in order."""

    file: str
    domains: Mapping[str, tuple[ModuleEntry, ...]]

    def modules_of(self, domain: str) -> tuple[ModuleEntry, ...]:
        """Return the modules that decide in a domain: its own, else those of ``other``; empty: nobody can log in."""
        return self.domains.get(domain) or self.domains.get(OTHER, ())


def read_login_config(path: str, properties: Mapping[str, str], asked_at: Origin, problems: Problems) -> LoginConfig:
    """Read a file. What is wrong is added to ``problems``, an unreadable file at ``asked_at``."""
    text = load_text(path, asked_at, problems)
    return LoginConfig(path, {}) if text is None else parse_login_config(text, path, properties, problems)


def parse_login_config(text: str, file: str, properties: Mapping[str, str], problems: Problems) -> LoginConfig:
    """Like :func:`read_login_config` for a text. The first error ends it, as in Java."""
    parser = _Parser(_tokens_of(text, file, problems), file, properties, problems)
    return LoginConfig(file, parser.run())


class _SyntaxProblem(ArtemisError):
    """The file ends or goes on otherwise than it must; already reported."""


@final
class _Parser:
    def __init__(self, tokens: Iterator[Token], file: str, properties: Mapping[str, str], problems: Problems) -> None:
        self._tokens: Final = tokens
        self._file: Final = file
        self._properties: Final = properties
        self._problems: Final = problems
        self._domains: Final[dict[str, tuple[ModuleEntry, ...]]] = {}
        self._token = Token(END, END, 1)

    def run(self) -> Mapping[str, tuple[ModuleEntry, ...]]:
        try:
            self._advance()
            while self._token.kind != END:
                self._domain()
        except _SyntaxProblem:
            pass
        return self._domains

    def _domain(self) -> None:
        origin = self._origin
        name = self._text("the name of a domain")
        self._character("{")
        modules: list[ModuleEntry] = []
        while self._token.kind != "}":
            modules.append(self._module())
        self._character("}")
        self._character(";")
        if name in self._domains:
            self._problems.error(origin, f"the domain {name} is in the file twice; Java refuses such a file")
        self._domains[name] = tuple(modules)

    def _module(self) -> ModuleEntry:
        origin = self._origin
        class_name = self._text("the class of a module, or }")
        flag_origin = self._origin
        flag = self._text("a flag")
        if flag.lower() not in FLAGS:
            suggestion = nearest(flag, FLAGS)
            self._fail(flag_origin, "unknown flag", value=flag, allowed=", ".join(FLAGS), suggestion=suggestion)
        options: dict[str, str] = {}
        origins: dict[str, Origin] = {}
        while self._token.kind != ";":
            option_origin = self._origin
            key = self._text("an option, or ; after the last one")
            self._character("=")
            options[key] = self._expanded(key, self._text(f"the value of {key}"), option_origin)
            origins[key] = option_origin
        self._character(";")
        return ModuleEntry(
            class_name=class_name, flag=flag.lower(), options=options, option_origins=origins, origin=origin
        )

    def _expanded(self, key: str, text: str, origin: Origin) -> str:
        """Replace placeholders as Java's PropertyExpander does; ``${{…}}`` stays."""

        def replaced(found: re.Match[str]) -> str:
            name = found[1]
            if name is None:
                return found[0]
            value = "/" if name == "/" else self._properties.get(name)
            if value is None:
                self._fail(origin, f"{key} refers to ${{{name}}}, which has no value; pass -D{name}=… in JAVA_ARGS")
            return value

        expanded = _PLACEHOLDER.sub(replaced, text)
        if text and not expanded:
            self._fail(origin, f"{key} becomes empty when its placeholders are replaced; Java refuses such a file")
        return expanded

    @property
    def _origin(self) -> Origin:
        return Origin(self._file, self._token.line)

    def _advance(self) -> None:
        token = next(self._tokens, None)
        if token is None:  # the tokens were wrong, and that is reported
            raise _SyntaxProblem
        self._token = token

    def _text(self, what: str) -> str:
        """Return the word or string that must come next, and go on."""
        token = self._token
        if token.kind not in (WORD, STRING):
            self._expected(what)
        self._advance()
        return token.text

    def _character(self, character: str) -> None:
        if self._token.kind != character:
            self._expected(character)
        self._advance()

    def _expected(self, what: str) -> NoReturn:
        """Fail. A word is not shown: it may be a password."""
        shown = None if self._token.kind in (WORD, STRING) else self._token.text
        self._fail(self._origin, f"{what} is expected here", value=shown)

    def _fail(
        self, origin: Origin, message: str, value: str | None = None, allowed: str | None = None,
        suggestion: str | None = None,
    ) -> NoReturn:  # fmt: skip
        self._problems.error(origin, message, value=value, allowed=allowed, suggestion=suggestion)
        raise _SyntaxProblem
