"""What selectors cost: no more than they and the headers are long, and equal ones are one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial

import pytest

from artemis_py.errors import SelectorError
from artemis_py.selector import SelectorLimits, compile_selector, evaluate
from artemis_py.selector.evaluate import TEXT_LENGTH_MAX
from artemis_py.selector.grammar import INTEGER_BITS_MAX
from tests.kit.cost import cpu_s, yardstick_s

PATTERNS: dict[str, Callable[[int], tuple[str, str]]] = {
    "percents": lambda n: ("%" * n + "b", "a" * n),
    "letters and percents": lambda n: ("%a" * (n // 2) + "%b%", "a" * n),
    "one long run": lambda n: ("%" + "a" * (n // 2) + "b%", "a" * n),
    "a run at each end": lambda n: ("a" * (n // 2) + "%" + "a" * (n // 3), "a" * n),
    "underscores only": lambda n: ("%" + "_" * (n // 2) + "%b", "a" * n),
    "no percent": lambda n: ("a_" * (n // 2), "a" * n),
    "an escape everywhere": lambda n: ("%" + "!%" * (n // 2) + "b", "%" * n),
    "short runs with underscores": lambda n: ("%a_b" * (n // 4) + "%", "aab" * (n // 3)),
}


def _like_s(name: str, length: int) -> float:
    pattern, text = PATTERNS[name](length)
    return cpu_s(lambda: lambda: evaluate.Pattern(pattern, "!").fits(text))


@pytest.mark.parametrize("name", PATTERNS)
def test_like_is_linear(name: str) -> None:
    """Pattern and text eight times as long: quadratic would be 64 times."""
    assert _like_s(name, 16_384) <= 30 * _like_s(name, 2_048) + 0.001


def test_a_long_run_with_underscores_follows_all_places_at_once() -> None:
    """Tried one after the other they would compare 8,000 characters at each of 16,000 places."""
    text = "a" * 16_000 + "b"
    run = evaluate.Pattern("%" + "a_" * 4_000 + "b%", None)
    assert run.fits(text)
    plain_s = cpu_s(lambda: lambda: sum([text[place] == "b" for place in range(16_000)]))
    assert cpu_s(lambda: partial(run.fits, text)) <= 60 * plain_s


def like_by_regex(pattern: str, escape: str | None, text: str) -> bool:
    """Does the text fit, as a plain reading of the rules says?"""
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if char == escape and pattern[place : place + 1] in ("%", "_", escape):
            parts.append(re.escape(pattern[place]))
            place += 1
        else:
            parts.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def test_a_short_run_is_not_compared_at_every_place_either() -> None:
    """Its parts would be compared 190 times 32; a hundred such patterns on one small header took 300 ms."""
    text = "a" * 250
    run = evaluate.Pattern("%" + "a_" * 32 + "b%", None)
    assert not run.fits(text)
    assert cpu_s(lambda: lambda: [run.fits(text) for _ in range(100)]) <= 12 * yardstick_s()


DEAR: dict[str, tuple[str, str]] = {
    "text that repeats itself": ("a LIKE '%" + "x" * 44 + "y" + "x" * 44 + "%'", "x" * 16_000),
    "long text that repeats itself": ("a LIKE '%" + "x" * 600 + "y" + "x" * 600 + "%'", "x" * 2_400),
    "the same beside any character": ("a LIKE '%" + "x" * 44 + "y" + "x" * 44 + "_%'", "x" * 16_000),
    "very many runs": ("a LIKE '%" + "x_y%" * 1_900 + "'", "xxy" * 5_300),
    "a run with fixed places": ("a LIKE '" + "x_" * 2_000 + "'", "x" * 4_000),
    "a joined text that is searched": ("a" + "+a" * 60 + " LIKE '%" + "x_" * 1_000 + "y%'", "x" * 999 + "y"),
    "joined texts": (" OR ".join(["a" + "+a" * 90 + " = 'x'"] * 5), "x" * 700),
    "joined digits": ("convert_string_expressions:''" + "+a" * 60 + " > 5", "1" * 1_000),
    "a text of its own": ("'" + "x" * 4_000 + "' LIKE '%" + "x_" * 1_000 + "y%' OR a = 'z'", "x"),
}


@pytest.mark.parametrize("name", DEAR)
def test_what_is_dear_is_charged_for(name: str) -> None:
    """Else many of them would be asked in one turn, which would last as many times longer. They said 10 to 400 times
    less than they cost.
    """
    text, header = DEAR[name]
    selector = compile_selector(text)
    program = selector.program
    units = program.units + (program.units_per_kb * len(header) >> 10)
    cost = cpu_s(lambda: partial(selector.matches, {"a": header}.get)) / yardstick_s()
    assert cost <= units / 300  # a unit may be 333 rounds of that loop


def test_what_is_joined_counts_as_long_as_it_gets() -> None:
    many = "a" + "+a" * 60
    texts = [
        f"{many} LIKE '%x_y%'",
        "a LIKE '%x_y%'",
        f"{many} = 'x'",
        "a + b > 5",
        f"convert_string_expressions:{many} > 5",
    ]
    like_many, like_one, equal, numbers, converted = (compile_selector(text).program.units_per_kb for text in texts)
    assert like_many > 61 * like_one
    assert equal > 61 * 61 // 10 > 0 == numbers
    assert converted > 61 * 61 // 2
    assert compile_selector("a LIKE '%" + "x_y%" * 1_900 + "'").program.units > 1_900


@pytest.mark.parametrize(("run", "most"), [("", 0), ("x", 0), ("abcabd", 0), ("xxxx", 4), ("ababab", 3), ("yxxxx", 0)])
def test_how_often_a_text_repeats_its_beginning(run: str, most: int) -> None:
    assert evaluate._repeats(run) == most


@pytest.mark.parametrize("tries_max", [16_384, 0])
def test_like_means_what_an_expression_means(tries_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However runs are found: one place after the other, or all at once."""
    monkeypatch.setattr(evaluate, "_TRIES_MAX", tries_max)
    chance = random.Random(4)
    found = 0
    for _ in range(5_000):
        pattern = "".join(chance.choice("ab%_!é\n") for _ in range(chance.randint(0, 9)))
        text = "".join(chance.choice("ab%!é\n") for _ in range(chance.randint(0, 14)))
        escape = chance.choice([None, "!", "%", "_"])
        fits = like_by_regex(pattern, escape, text)
        assert evaluate.Pattern(pattern, escape).fits(text) is fits, (pattern, escape, text)
        found += fits
    assert found > 100


def test_numbers_do_not_grow_without_end() -> None:
    """A product of a hundred numbers of 4,000 digits would take longer than all else in a turn."""
    product = compile_selector("convert_string_expressions:" + "*".join(["a"] * 99) + " > 0")
    assert not product.matches({"a": "9" * 1000}.get)
    assert product.matches({"a": "7"}.get)
    largest = 2**INTEGER_BITS_MAX - 1
    assert not compile_selector("a + 1 > 0").matches({"a": largest}.get)
    assert compile_selector("a - 1 > 0").matches({"a": largest}.get)


def test_texts_do_not_grow_without_end() -> None:
    joined = compile_selector("a + a LIKE '%'")
    assert joined.matches({"a": "x" * (TEXT_LENGTH_MAX // 2)}.get)
    assert not joined.matches({"a": "x" * (TEXT_LENGTH_MAX // 2 + 1)}.get)


def test_equal_selectors_are_one() -> None:
    one, other = compile_selector("color = 'red' AND size > 5"), compile_selector("color='red'  and size>5 -- large")
    assert one.program is other.program
    assert (one.text, other.text) == ("color = 'red' AND size > 5", "color='red'  and size>5 -- large")


@pytest.mark.parametrize(
    "different",
    [
        "color = 'Red' AND size > 5", "color = red AND size > 5", "color = 'red' AND size > 5.0",
        "color = 'red' OR size > 5", "convert_string_expressions:color = 'red' AND size > 5",
        "Color = 'red' AND size > 5",
        "color = 'red' AND (size > 5)", 'color = "red" AND size > 5',
    ],
)  # fmt: skip
def test_different_selectors_are_not(different: str) -> None:
    one = compile_selector("color = 'red' AND size > 5")
    assert compile_selector(different).program is not one.program


def test_what_nobody_asks_any_more_is_forgotten() -> None:
    one, other = compile_selector("a = 'only here'"), compile_selector("a='only here'")
    key = one.program.key
    assert key in evaluate._programs
    del one
    assert key in evaluate._programs
    del other
    assert key not in evaluate._programs


def test_the_number_of_terms_is_limited() -> None:
    limits = SelectorLimits(1_000, 7)
    compile_selector("a IN ('1', '2', '3') AND b", limits)
    with pytest.raises(SelectorError, match="selector: it has 8 names, values and operators, at most 7 are allowed"):
        compile_selector("a IN ('1', '2', '3', '4') AND b", limits)


def test_the_length_is_counted_in_bytes() -> None:
    limits = SelectorLimits(10, 100)
    compile_selector("a = 'éé'", limits)
    with pytest.raises(SelectorError, match="selector: it has 11 bytes, at most 10 are allowed"):
        compile_selector("a  = 'éé'", limits)


def test_dear_selectors_say_so() -> None:
    plain, wide, text = map(compile_selector, ("a = 'x'", " OR ".join(["a = 'x'"] * 100), "a LIKE '%x%'"))
    assert 20 * plain.program.units < wide.program.units
    assert plain.program.units_per_kb == 0 < text.program.units_per_kb
    assert text.program.units_per_kb < compile_selector("a LIKE '%x_y%'").program.units_per_kb
