"""What the records about pages say comes back from their bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from artemis_py.message import Account, Head
from artemis_py.paged_messages import Page, PagedMessage, PageShare, PlaceSet, SettledPlaces
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import PageAttempted, PagePurged, PageSettled
from artemis_py.storage.format.names import page_name, page_numbers
from artemis_py.storage.format.records import CAUSES, REASONS

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(1, 2**64 - 1)
FILE_NUMBER = st.integers(0, 999_999_999)
PLACES = st.lists(st.integers(1, 2**40), min_size=1, max_size=20, unique=True)


def messages_at(page: Page, places: list[int]) -> list[PagedMessage]:
    """Messages of 3 bytes each."""
    head = Head(b"a\n", "a", persistent=True)
    return [PagedMessage(head, b"x", 2 * place, 0, 0, Account(), page, place) for place in places]


@given(FILE_NUMBER, FILE_NUMBER)
def test_file_names(stream: int, number: int) -> None:
    assert page_numbers(page_name(stream, number)) == (stream, number)


def test_other_files_are_no_pages() -> None:
    for name in (
        "1-2.page",
        "quarantined-000000001-000000002.page",
        "000000001-000000002.pages",
        "٠" * 9 + "-" + "1" * 9,
    ):
        assert page_numbers(name) is None


@given(U32, U32, U32, U64, U64, st.booleans(), st.dictionaries(U32, st.tuples(U32, U64), max_size=9))
def test_how_far_a_page_counts(
    stream: int, number: int, count: int, size: int, expires: int, large: bool, shares: dict[int, tuple[int, int]]
) -> None:
    page = Page(stream, number, 1)
    page.kept_count, page.kept_bytes, page.expires_ms, page.has_large = count, size, expires, large
    page.durable = {queue_id: PageShare(*share) for queue_id, share in shares.items()}
    told = codec.decode_page_grew(codec.encode_page_grew(page))
    for name in ("stream", "number", "kept_count", "kept_bytes", "expires_ms", "has_large"):
        assert getattr(told, name) == getattr(page, name), name
    assert {queue_id: (one.count, one.size_bytes) for queue_id, one in told.durable.items()} == shares


@given(U32, U32, U32, PLACES, st.sampled_from(REASONS), U64)
def test_what_is_settled(
    queue_id: int, stream: int, number: int, places: list[int], reason: str, consumer: int
) -> None:
    messages = messages_at(Page(stream, number, 1), places)
    told = codec.decode_page_settled(codec.encode_page_settled(queue_id, messages, reason, consumer))
    ids = tuple(message.id for message in messages)
    assert told == PageSettled(queue_id, stream, number, reason, 3 * len(places), tuple(places), ids, consumer)


@given(
    st.builds(
        PagePurged,
        U32, U32, U32, st.lists(st.integers(1, 2**40), max_size=20, unique=True).map(tuple), U64,
        st.sampled_from(REASONS), U32, U64,
    )
)  # fmt: skip
def test_what_is_purged(purged: PagePurged) -> None:
    assert codec.decode_page_purged(codec.encode_page_purged(purged)) == purged


@given(st.builds(PageAttempted, U32, U32, U32, U64, U64, st.integers(0, 65535), U64, NUMBERS, st.sampled_from(CAUSES)))
def test_failed_deliveries(attempted: PageAttempted) -> None:
    assert codec.decode_page_attempted(codec.encode_page_attempted(attempted)) == attempted


def test_failed_deliveries_are_counted_up_to_65535() -> None:
    payload = codec.encode_page_attempted(PageAttempted(1, 2, 3, 4, 5, 100_000, 6))
    assert codec.decode_page_attempted(payload) == PageAttempted(1, 2, 3, 4, 5, 65535, 6)


def test_records_from_before_consumers_and_reasons_were_told() -> None:
    """Their payloads end where these would be."""
    page = Page(1, 2, 1)
    settled = codec.encode_page_settled(7, messages_at(page, [4]), "acked")
    assert len(settled) == 25 + 16
    assert codec.decode_page_settled(settled).consumer == 0
    purged = bytes.fromhex("07000000 01000000 02000000 01000000 0300000000000000 0400000000000000")
    assert codec.decode_page_purged(purged) == PagePurged(7, 1, 2, (4,), 3, "killed", 0, 0)
    attempted = codec.encode_page_attempted(PageAttempted(7, 1, 2, 4, 8, 1, 0))
    assert len(attempted) == 38
    assert codec.decode_page_attempted(attempted).cause == ""


@given(U32, U32, U32, st.sets(st.integers(5, 300)), U32, U64)
def test_places(queue_id: int, stream: int, page: int, places: set[int], count: int, size: int) -> None:
    settled = SettledPlaces(PlaceSet(5), count, size)
    for place in places:
        settled.places.add(place)
    *told, bits = codec.decode_page_places(codec.encode_page_places(queue_id, stream, page, settled))
    assert told == [queue_id, stream, page, 5, count, size]
    again = PlaceSet(5, bits)
    assert {place for place in range(5, 400) if place in again} == places


@given(U32, U32)
def test_dropped(stream: int, page: int) -> None:
    assert codec.decode_page_dropped(codec.encode_page_dropped(stream, page)) == (stream, page)
