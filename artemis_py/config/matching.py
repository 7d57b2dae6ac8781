"""Which ``match`` of an address-setting or security-setting applies to an address, and in which order.

This is the first of two wildcard engines; the other, for routing messages, is :mod:`artemis_py.config.wildcards`.

The rules are Artemis' own (with the default characters ``.``, ``#`` and ``*``):

- ``#`` alone matches every address. Otherwise it may only be the last character; it stands for nothing, or for a
  delimiter and one or more characters of any kind but line breaks. A delimiter in front of it counts as part of it,
  so ``a.#`` and ``a#`` mean the same: ``a``, ``a.b``, ``a.b.c``, not ``ab`` and not ``a.``.
- ``*`` stands for one or more characters other than the delimiter, also inside a word (``a*`` matches ``ab``).
- A match without wildcards, or whose wildcards all follow a backslash, is compared as plain text, backslash included.

:meth:`Repository.candidates` returns the plain match first, then the literal one (see ``literal_match_markers``),
then the wildcard matches in this order:

a) without ``#`` before with ``#``; b) both with ``#``: the longer text first; c) neither with ``#``: without ``*``
before with ``*``; d) word by word from the left, at the first place where exactly one of them has the word ``*``, the
other wins; e) the shorter text first.

Artemis leaves the order of some matches (equally long ones with ``#``) to a hash table. Here rule d decides, and then
the text: ``a.b.#`` comes before ``a.*.#``, and ``a.b.#`` before ``*.b.#``.

Differences from Artemis:

- Special characters of regular expressions are plain text in a match. ``a+b.*`` matches ``a+b.c`` and not
  ``aab.c``; ``q[1]``, ``(a`` and ``a{b}`` are accepted. Artemis passes them to its regular expressions unescaped.
- In a match with wildcards, a wildcard after a backslash is plain text and the backslash stays part of the text, as in
  a match without wildcards.
- An empty match is also accepted with literal markers; it applies to the empty address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from artemis_py.errors import MatchError

T = TypeVar("T")

_ESCAPE: Final = "\\"
_NO_LINE_BREAK: Final = "[^\\n\\r\\x85\\u2028\\u2029]"
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@final
@dataclass(frozen=True, slots=True)
class WildcardSyntax:
    """The ``wildcard-addresses`` element: the characters that separate words and stand for words.

    ``routing_enabled`` affects routing only; settings always match by wildcards. Each of the others is exactly one
    character, and all differ; otherwise :class:`~artemis_py.errors.MatchError` is raised. (Artemis uses the first
    character of a longer text; the reader cuts it.)
    """

    routing_enabled: bool = True
    delimiter: str = "."
    any_words: str = "#"
    single_word: str = "*"

    def __post_init__(self) -> None:
        characters = {"delimiter": self.delimiter, "any-words": self.any_words, "single-word": self.single_word}
        for name, text in characters.items():
            if len(text) != 1:
                raise MatchError(f"wildcard-addresses: {name} must be exactly one character, found {text!r}")
        if len(set(characters.values())) != len(characters):
            raise MatchError("wildcard-addresses: delimiter, any-words and single-word must differ from each other")


DEFAULT_SYNTAX: Final = WildcardSyntax()


def literal_text(match: str, literal_match_markers: str | None) -> str | None:
    """Return the text between the literal markers, or None if ``match`` is not enclosed in them."""
    if literal_match_markers is None or len(match) < 2:
        return None
    if match[0] != literal_match_markers[0] or match[-1] != literal_match_markers[1]:
        return None
    return match[1:-1]


def has_wildcard(match: str, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> bool:
    """Return whether ``match`` contains a wildcard character without a backslash before it."""
    return any(
        char in (syntax.any_words, syntax.single_word) and (position == 0 or match[position - 1] != _ESCAPE)
        for position, char in enumerate(match)
    )


def check_match(match: str, syntax: WildcardSyntax = DEFAULT_SYNTAX, literal_match_markers: str | None = None) -> None:
    """Raise :class:`~artemis_py.errors.MatchError` if ``match`` is not allowed.

    The only rule, from Artemis: nothing may follow the any-words character, not even inside literal markers or after a
    backslash.
    """
    text = literal_text(match, literal_match_markers)
    if text is None:
        text = match
    place = text.find(syntax.any_words)
    if 0 <= place < len(text) - 1:
        raise MatchError(
            f"match {match!r}: {syntax.any_words!r} must be the last character, but {text[place + 1 :]!r} follows it; "
            f"use {syntax.single_word!r} for a single word in the middle"
        )


def check_setting_match(match: str, syntax: WildcardSyntax, literal_match_markers: str | None) -> None:
    """As ``check_match``, for an address-setting that somebody writes. An empty match, which Artemis takes, covers no
    address.
    """
    if not match:
        raise MatchError(f"the match is empty, and covers no address; {syntax.any_words!r} covers all of them")
    check_match(match, syntax, literal_match_markers)


def check_literal_markers(markers: str) -> None:
    """Raise :class:`~artemis_py.errors.MatchError` unless ``literal-match-markers`` is two characters."""
    if len(markers) != 2:
        raise MatchError(
            f"literal-match-markers must be two characters, the opening and the closing marker, found {markers!r}"
        )


def setting_matches(match: str, address: str, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> bool:
    """Return whether ``match`` applies to ``address``; literal markers have no meaning here. Raises MatchError."""
    check_match(match, syntax)
    if not has_wildcard(match, syntax):
        return match == address
    return _WildcardMatch(match, syntax).matches(address)


@final
class Repository(Generic[T]):
    """Values by ``match``, looked up by address. Immutable once built.

    ``entries`` are in file order. Of two with the same ``match`` the last counts, so a caller for whom the first counts
    (address-settings) omits the others. ``literal_match_markers`` is None if the file sets none. Raises
    :class:`~artemis_py.errors.MatchError` for the first entry that :func:`check_match` refuses.

    Does not merge values, does not cut ``address::queue`` and does not cache lookups.
    """

    __slots__ = ("_exact", "_literal", "_prefix_lengths", "_wildcards", "syntax")

    def __init__(
        self,
        entries: Iterable[tuple[str, T]],
        syntax: WildcardSyntax = DEFAULT_SYNTAX,
        *,
        literal_match_markers: str | None = None,
    ) -> None:
        if literal_match_markers is not None:
            check_literal_markers(literal_match_markers)
        self.syntax: Final = syntax
        self._exact: dict[str, T] = {}
        self._literal: dict[str, tuple[str, T]] = {}
        wildcards: dict[str, T] = {}
        for match, value in entries:
            check_match(match, syntax, literal_match_markers)
            literal = literal_text(match, literal_match_markers)
            if literal is not None:
                self._literal[literal] = (match, value)
            elif has_wildcard(match, syntax):
                wildcards[match] = value
            else:
                self._exact[match] = value
        self._wildcards: dict[str, list[tuple[int, _WildcardMatch, T]]] = {}  # by the plain text they begin with
        ranked = sorted((_WildcardMatch(match, syntax) for match in wildcards), key=_WildcardMatch.sort_key)
        for rank, wildcard in enumerate(ranked):
            self._wildcards.setdefault(wildcard.prefix, []).append((rank, wildcard, wildcards[wildcard.text]))
        self._prefix_lengths: Final = sorted({len(prefix) for prefix in self._wildcards})

    def candidates(self, address: str) -> list[tuple[str, T]]:
        """Return every (match, value) that applies to ``address``, the most specific first.

        Only matches whose plain prefix is a prefix of the address are tried.
        """
        found: list[tuple[str, T]] = []
        if address in self._exact:
            found.append((address, self._exact[address]))
        literal = self._literal.get(address)
        if literal is not None:
            found.append(literal)
        ranked: list[tuple[int, str, T]] = []
        for length in self._prefix_lengths:
            if length > len(address):
                break
            for rank, wildcard, value in self._wildcards.get(address[:length], ()):
                if wildcard.matches(address):
                    ranked.append((rank, wildcard.text, value))
        ranked.sort(key=_rank)
        found.extend((match, value) for _, match, value in ranked)
        return found

    def exact(self, name: str) -> T | None:
        """Return the value whose match is the plain text ``name`` without markers, or None."""
        return self._exact.get(name)


def _rank(item: tuple[int, str, object]) -> int:
    return item[0]


@final
class _WildcardMatch:
    """One match with wildcards; its regular expression is compiled on first use."""

    __slots__ = ("_pattern", "_syntax", "prefix", "text")

    def __init__(self, text: str, syntax: WildcardSyntax) -> None:
        self.text: Final = text
        self._syntax: Final = syntax
        self._pattern: re.Pattern[str] | None = None
        head, _ = self._split_head()
        stars = [place for place in range(len(head)) if self._is_star(head, place)]
        self.prefix: Final = head[: stars[0]] if stars else head

    def matches(self, address: str) -> bool:
        if self.text == self._syntax.any_words:
            return True
        if self._pattern is None:
            self._pattern = re.compile(self._expression())
        return self._pattern.fullmatch(address) is not None

    def sort_key(self) -> tuple[int, int, tuple[bool, ...], int, str]:
        """Rules a to e of the module docstring as one key."""
        syntax = self._syntax
        stars = [word == syntax.single_word for word in self.text.split(syntax.delimiter)]
        while stars and not stars[-1]:
            stars.pop()  # a missing word counts as one that is not a lone wildcard
        if syntax.any_words in self.text:
            return 1, -len(self.text), tuple(stars), 0, self.text
        return 0, 0, tuple(stars), len(self.text), self.text  # all of these have a single-word character, so no rule c

    def _split_head(self) -> tuple[str, bool]:
        """Return the text before a final any-words character and its delimiter, and whether there is one."""
        syntax = self._syntax
        if not self.text.endswith(syntax.any_words) or self.text.endswith(_ESCAPE + syntax.any_words):
            return self.text, False
        return self.text.removesuffix(syntax.any_words).removesuffix(syntax.delimiter), True

    def _is_star(self, head: str, place: int) -> bool:
        return head[place] == self._syntax.single_word and (place == 0 or head[place - 1] != _ESCAPE)

    def _expression(self) -> str:
        """Return a regular expression whose cost grows at most with the product of both lengths.

        Each plain text after a ``*``, except the last of its word, matches at its first place, in an atomic group: a
        later place could not match more.
        """
        delimiter = re.escape(self._syntax.delimiter)
        head, any_words = self._split_head()
        words = [self._word_expression(word, f"[^{delimiter}]") for word in head.split(self._syntax.delimiter)]
        tail = f"(?:{delimiter}{_NO_LINE_BREAK}+)?" if any_words else ""
        return delimiter.join(words) + tail

    def _word_expression(self, word: str, one_char: str) -> str:
        runs: list[str] = [""]
        for place, char in enumerate(word):
            if self._is_star(word, place):
                runs.append("")
            else:
                runs[-1] += char
        parts = [re.escape(runs[0])]
        for run in runs[1:-1]:
            parts.append(f"(?>{one_char}+?{re.escape(run)})")
        if len(runs) > 1:
            parts.append(f"{one_char}+{re.escape(runs[-1])}")
        return "".join(parts)


def uuid_key(address: str, namespace: str, delimiter: str) -> str:
    """Return the name under which settings of ``address`` are looked up.

    With ``uuid-namespace`` set, an address that is a UUID in lower case is looked up as namespace, delimiter, UUID.
    """
    if namespace and _UUID.fullmatch(address):
        return f"{namespace}{delimiter}{address}"
    return address
