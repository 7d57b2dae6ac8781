"""Words and phrases that made readers stop, with what to say instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Final

from tests.kit.sources import statements_of

INSTEAD: Final = {
    r"gone, and no dead letters": "deleted, not dead-lettered",
    r"refuses nobody": "requires a login",
    r"wants? to know who you are": "Log in to NAME",
    r"without it,? (all|any)\b": "default: all; empty means all",
    r"has room for \S+ more": "5 of 1,000 connections",
    r"go(es)? on by (itself|themselves)": "background job; runs in the background",
    r"keeps a cursor": "a cursor keeps files until its reader has read them",
    r"\bat last\b": "finally",
    r"\ball the same\b": "still, anyway",
    r"\bin the end\b": "finally, at the end",
    r"nothing comes of it": "is aborted",
    r"that (is|are) none\b": "invalid",
    r"\b(is|are|was|were) told\b": "is reported, is logged, is named",
    r"\btold of\b": "reported",
    r"com(es?|ing) into being|came into being": "is created",
    r"for want of": "for lack of",
    r"what is wanted": "what was asked for",
    r"in the place of": "replaces, instead of",
    r"whatever becomes of": "whatever happens to",
    r"\bas ever\b": "as usual, as before",
    r"\bother than in\b": "unlike",
    r"\bwithout a word\b": "silently, without a log line",
    r"\bat hand\b": "waiting, present",
    r"\bif need be\b": "if necessary",
    r"\b(must|has to|have to) see to\b": "must fix, handles",
    r"\b(is|are) said (above|below|once|there)\b": "is described above",
    r"\b(is|are) none of\b": "is not",
    r"\bhas it that\b": "says that",
    r"\bgo(es)? home\b": "ends",
    r"\ba work\b|\bworks of operators\b|operators' works\b": "an operation, a task",
    r"\b(admit|serve|kill|cut|disturb|stop|harm)s? nobody\b": "(say who may, or that all may)",
    r"\bstands? (there|beside|above|below|written)\b": "is there, is described there",
    r"\bof its own accord\b": "without a request",
    r"\bin good order\b": "cleanly",
    r"\btells? of\b": "reports",
    r"\bthrown? away\b": "discarded, dropped",
    r"\bpushed out\b": "dropped",
    r"\bhave news\b": "have results",
    r"\b(two|regular|next) rounds\b": "scans",
    r"nobody has looked": "unknown, not checked",
    r"does not know of it": "does not know it",
    r"has nothing against": "accepts",
    r"stands? against": "prevents",
    r"is (of|about) nobody": "concerns no user",
    r"leaves? much to be": "is incomplete",
    r"it goes without saying": "(leave it out)",
    r"simply|obviously|of course|basically": "(leave it out)",
    r"in order to": "to",
    r"utili[sz]e": "use",
    r"please note|note that": "(say it)",
    r"\b(restart|reload)s?( or a reload| and a reload)? (has|have|makes?|gives?) (it|one|an|those)\b": (
        "it survives a restart; a restart creates it again"
    ),
    r"\bmakes? it (again|anew)\b": "creates it again, writes it again",
    r"\bhas? done stands\b": "is not undone",
    r"\bmakes? it no\b": "it is no",
    r"\ball that is given or none\b|, all that are given or none\b": "all that are given, or none",
    r"\bbe(fore|tween) two looks\b|\bhow many looks\b": "refreshes",
    r"\bdeeds?\b": "operation on messages",
    r"\bgraves?\b|\bbury\b|\bburied\b": "dead-letter address, dead-letter",
    r"\bseats?\b": "consumers",
    r"\btally\b|\btallies\b": "counters",
    r"\bdealings\b": "consumer statistics",
    r"\baftermath\b": "after removal",
    r"\bvitals\b": "health",
    r"\brota\b": "input scheduler",
    r"\bdoors\b": "authentication",
}
"""An expression, and what to say instead of it."""

IN_MESSAGES: Final = {
    r"(?<!there )\b(is|are) no (?!longer\b|more\b)\w": "is not a",
    r"\bis a (number|text)[^,;]*, and \S+ (is none|has more)\b": "must be a number, not",
    r"\b(is|a number|seconds|or more|MULTICAST|false), and not\b": "must be, not",
    r"\bto go on\b|\bwent on\b": "to continue",
    r"\b(has|had) it (wrong|no more)\b": "is wrong, any more",
    r"\bleave \S+ away\b": "omit",
    r"\bboth say\b": "give one of the two",
}
"""The same, of what the program says itself."""

_EXPRESSIONS: Final = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in INSTEAD.items()}
OF_MESSAGES: Final = _EXPRESSIONS | {
    re.compile(pattern, re.IGNORECASE): instead for pattern, instead in IN_MESSAGES.items()
}
_QUOTED: Final = re.compile(r"^(```|~~~).*?^\1\s*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def prose_of(markdown: str) -> str:
    """The text without code, on the same lines."""
    return _QUOTED.sub(lambda found: "\n" * found[0].count("\n"), markdown)


def docstrings_of(code: str) -> str:
    """The docstrings of a module, its classes, functions and fields."""
    texts = (node.value for node in statements_of(code) if isinstance(node, ast.Expr))
    return "\n\n".join(text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str))


def messages_of(code: str) -> list[tuple[int, str]]:
    """The texts of a module that are no docstrings, with their lines; an X is where a value stands."""
    found: list[tuple[int, str]] = []
    inside: set[int] = set()
    for node in ast.walk(ast.parse(code)):  # what is around comes first
        if isinstance(node, ast.Expr):
            inside.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inside.update(map(id, node.values))
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            found.append((node.lineno, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            found.append((node.lineno, node.value))
    return [(line, text) for line, text in found if " " in text]


def phrases_in(name: str, text: str, expressions: Mapping[re.Pattern[str], str] = _EXPRESSIONS) -> list[str]:
    """Each phrase with its line, also one that a line break divides, and what to say instead."""
    joined = re.sub(r"[ \t]*\n[ \t]*(?:\* )?(?!\n)", "\n", text)
    in_one_line = joined.replace("\n", " ")
    found = []
    for expression, instead in expressions.items():
        for match in expression.finditer(in_one_line):
            line = joined.count("\n", 0, match.start()) + 1
            found.append(f"{name}:{line}: {match[0]!r}; say: {instead}")
    return found
