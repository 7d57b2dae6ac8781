"""Which wildcard addresses a message is routed to, and what a wildcard SUBSCRIBE means.

This is the second of two wildcard engines; the first, for settings, is :mod:`artemis_py.config.matching`.

The rule, with the default characters: an address is split into words at ``.``; empty words count. In a pattern the word
``*`` stands for exactly one word, and the word ``#`` for any number of words, including none, at any place. All other
words are plain text, even if they contain ``*`` or ``#``: ``a*`` matches only ``a*``.

Artemis deviates from this rule if ``#`` is followed by more than one word, by ``*`` or by another ``#``. Its
documentation does not say so, and this broker does not copy it.

The functions only compare texts. A message sent to an address that is itself a pattern goes only to the bindings of
that address; the router ensures this with :func:`is_wildcard`.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.config.matching import DEFAULT_SYNTAX, WildcardSyntax


def is_wildcard(address: str, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> bool:
    """Return whether ``address`` is a pattern: one of its words is a wildcard. Always False if wildcard routing is
    off.
    """
    if not syntax.routing_enabled:
        return False
    if syntax.any_words not in address and syntax.single_word not in address:
        return False
    words = address.split(syntax.delimiter)
    return syntax.any_words in words or syntax.single_word in words


@final
class _Node:
    """The place in the tree of patterns that a sequence of words leads to."""

    __slots__ = ("words", "single_word", "any_words", "pattern", "repeats")

    def __init__(self, repeats: bool = False) -> None:
        self.words: Final[dict[str, _Node]] = {}
        self.single_word: _Node | None = None
        self.any_words: _Node | None = None
        self.pattern: str | None = None
        self.repeats: Final = repeats  # reached by an any-words wildcard, so every further word may stay here

    def is_empty(self) -> bool:
        return not (self.words or self.single_word or self.any_words or self.pattern is not None)


@final
class WildcardIndex:
    """A set of patterns; a search takes time that grows with the number of words of the address.

    A pattern without wildcards may also be added and matches only itself. Lookups are not cached.
    """

    __slots__ = ("_patterns", "_root", "syntax")

    def __init__(self, syntax: WildcardSyntax = DEFAULT_SYNTAX) -> None:
        self.syntax: Final = syntax
        self._root: Final = _Node()
        self._patterns: Final[set[str]] = set()

    def __len__(self) -> int:
        return len(self._patterns)

    def __contains__(self, pattern: object) -> bool:
        return pattern in self._patterns

    def add(self, pattern: str) -> None:
        """Add ``pattern``; adding it again changes nothing."""
        self._patterns.add(pattern)
        node = self._root
        for word in self._words(pattern):
            child = self._child(node, word)
            if child is None:
                child = self._grow(node, word)
            node = child
        node.pattern = pattern

    def remove(self, pattern: str) -> None:
        """Remove ``pattern`` and the branches that only it used. Raises KeyError if it is not in the set."""
        self._patterns.remove(pattern)
        path: list[tuple[_Node, str]] = []
        node: _Node | None = self._root
        for word in self._words(pattern):
            assert node is not None
            path.append((node, word))
            node = self._child(node, word)
        assert node is not None
        node.pattern = None
        for parent, word in reversed(path):
            child = self._child(parent, word)
            if child is None or not child.is_empty():
                break
            self._cut(parent, word)

    def matching(self, address: str) -> list[str]:
        """Return the patterns that match ``address``, in the order of their text."""
        if not self._patterns:
            return []
        places = _with_any_words({self._root: None})
        for word in address.split(self.syntax.delimiter):
            following: dict[_Node, None] = {}
            for node in places:
                if node.repeats:
                    following[node] = None
                child = node.words.get(word)
                if child is not None:
                    following[child] = None
                if node.single_word is not None:
                    following[node.single_word] = None
            if not following:
                return []
            places = _with_any_words(following)
        return sorted(node.pattern for node in places if node.pattern is not None)

    def _words(self, pattern: str) -> list[str]:
        return pattern.split(self.syntax.delimiter)

    def _child(self, node: _Node, word: str) -> _Node | None:
        if self.syntax.routing_enabled:
            if word == self.syntax.single_word:
                return node.single_word
            if word == self.syntax.any_words:
                return node.any_words
        return node.words.get(word)

    def _grow(self, node: _Node, word: str) -> _Node:
        if self.syntax.routing_enabled and word == self.syntax.single_word:
            node.single_word = child = _Node()
        elif self.syntax.routing_enabled and word == self.syntax.any_words:
            node.any_words = child = _Node(repeats=True)
        else:
            node.words[word] = child = _Node()
        return child

    def _cut(self, node: _Node, word: str) -> None:
        if self.syntax.routing_enabled and word == self.syntax.single_word:
            node.single_word = None
        elif self.syntax.routing_enabled and word == self.syntax.any_words:
            node.any_words = None
        else:
            del node.words[word]


def _with_any_words(places: dict[_Node, None]) -> dict[_Node, None]:
    """Add the nodes that any-words wildcards reach with no word."""
    waiting = list(places)
    while waiting:
        child = waiting.pop().any_words
        if child is not None and child not in places:
            places[child] = None
            waiting.append(child)
    return places
