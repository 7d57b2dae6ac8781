"""The pages of docs/ that are made of the tables in the code."""

from __future__ import annotations

import pytest

from tools.docs.__main__ import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == PAGES[name](), f"make docs writes docs/{name} anew"
