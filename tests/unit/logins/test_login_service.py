"""The login service: what is verified, remembered, joined, slowed down and refused, and what the log says of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from artemis_py.errors import AuthenticatorError, CredentialsRefusedError, NotYetError
from artemis_py.security.identity import Credentials
from artemis_py.security.login import Login
from artemis_py.server.logins import login_service as desk_module
from artemis_py.server.logins.login_service import (
    AGAIN_S,
    FORGET_MS,
    FREE,
    HELD_OF_ONE_MAX,
    PAUSE_MS,
    PAUSE_MS_MAX,
    THREADS,
)
from tests.unit.logins.parts import PEER, START_MS, Stage, Users

OTHER_PEER = "198.51.100.7"


@pytest.fixture
def users() -> Iterator[Users]:
    """Two users; nothing waits for them after the test."""
    made = Users({"ann": "secret-of-ann", "bob": "secret-of-bob"})
    made.may_answer.set()
    yield made
    made.may_answer.set()


@pytest.fixture
def stage(users: Users) -> Iterator[Stage]:
    """A login service for them."""
    made = Stage(users)
    yield made
    made.logins.stop()


def test_a_thread_decides_and_the_client_is_woken(stage: Stage) -> None:
    login = stage.begin("ann", "secret-of-ann", wake="ann")
    assert not login.may_go_on
    stage.decide(login)
    assert login.identity is not None
    assert (login.identity.user, login.identity.roles, login.refusal) == ("ann", {"amq"}, "")
    assert stage.woken == ["ann"]
    assert stage.counts.results() == {"failure": 0, "success": 1}


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", "secret-of-ann"), (None, None), ("", "")])
def test_wrong_credentials_are_refused_alike(stage: Stage, user: str | None, password: str | None) -> None:
    login = stage.log_in(user, password)
    assert login.identity is None
    assert login.refusal == "User name or password is invalid"
    assert not login.is_open
    assert stage.counts.results() == {"failure": 1, "success": 0}
    assert stage.counts.refusals["invalid"] == 1


def test_right_credentials_are_remembered_for_the_interval_and_from_every_peer(stage: Stage) -> None:
    stage.log_in("ann", "secret-of-ann")
    stage.time.advance(9_999)
    again = stage.begin("ann", "secret-of-ann", OTHER_PEER, wake="again")
    assert again.identity is not None
    assert stage.woken == [""]  # whoever has the answer already need not be woken
    assert len(stage.users.asked) == 1
    stage.time.advance(1)
    assert stage.begin("ann", "secret-of-ann").identity is None
    assert stage.counts.results()["success"] == 2


def test_wrong_credentials_are_remembered_too(stage: Stage) -> None:
    stage.log_in("ann", "wrong")
    assert stage.begin("ann", "wrong").refusal
    assert len(stage.users.asked) == 1
    stage.users.passwords["ann"] = "wrong"
    stage.time.advance(10_000)
    assert stage.log_in("ann", "wrong").identity is not None


@pytest.mark.parametrize(
    "other",
    [
        Credentials("ann", "secret-of-ann", certificate=b"x"),
        Credentials("ann", "secret-of-ann", domain="d"),
        Credentials("anns", "ecret-of-ann"),
        Credentials(None, "secret-of-ann"),
        Credentials("ann"),
    ],
)
def test_only_exactly_the_same_credentials_are_remembered(stage: Stage, other: Credentials) -> None:
    stage.log_in("ann", "secret-of-ann")
    assert not stage.logins.begin(other, lambda: None).may_go_on


def test_an_interval_of_zero_and_a_size_of_zero_remember_nothing(users: Users) -> None:
    for stage in (Stage(users, interval_ms=0), Stage(users, cache_size=0)):
        stage.log_in("ann", "secret-of-ann")
        assert not stage.begin("ann", "secret-of-ann").may_go_on
        stage.logins.stop()


def test_guesses_do_not_displace_those_who_work(users: Users) -> None:
    stage = Stage(users, cache_size=2)
    stage.log_in("ann", "secret-of-ann")
    for number in range(5):
        stage.log_in(f"nobody{number}", "x", f"192.0.2.{number + 10}")
    assert stage.begin("ann", "secret-of-ann").identity is not None
    stage.log_in("bob", "secret-of-bob")
    users.passwords["eve"] = "e"
    stage.log_in("eve", "e")
    assert not stage.begin("ann", "secret-of-ann").may_go_on  # the oldest of three makes room
    stage.logins.stop()


def test_the_same_attempt_is_verified_once_for_all(stage: Stage) -> None:
    stage.users.may_answer.clear()
    first = stage.begin("ann", "secret-of-ann", wake="first")
    second = stage.begin("ann", "secret-of-ann", OTHER_PEER, wake="second")
    stage.users.may_answer.set()
    stage.decide(first)
    assert second.identity is first.identity
    assert stage.woken == ["first", "second"]
    assert len(stage.users.asked) == 1
    assert stage.counts.successes == 2


def test_an_authenticator_that_cannot_tell_refuses_nobody_for_good(stage: Stage) -> None:
    stage.users.failure = AuthenticatorError("the directory at ldap://dir does not answer")
    login = stage.log_in("ann", "secret-of-ann")
    assert login.refusal == "The broker cannot check logins now; try again later"
    assert login.is_open
    assert stage.counts.refusals["unavailable"] == 1
    line, _ = stage.complaints[-1]
    assert line == "warning: login of 'ann' refused: the directory at ldap://dir does not answer"
    stage.users.failure = None
    assert stage.log_in("ann", "secret-of-ann").identity is not None


def test_an_authenticator_that_breaks_is_named_without_its_words(stage: Stage) -> None:
    stage.users.failure = ValueError("cannot parse secret-of-ann")
    login = stage.log_in("ann", "secret-of-ann")
    assert login.is_open
    line, _ = stage.complaints[-1]
    assert "Users failed with ValueError at " in line
    assert "secret-of-ann" not in line


def test_who_only_asks_whether_to_log_in_has_not_failed(stage: Stage) -> None:
    for _ in range(20):
        login = stage.logins.begin(Credentials(None, peer=PEER, asks_first=True), lambda: None)
        assert stage.decide(login).refusal
    assert not stage.complaints
    assert stage.counts.failures == 0
    assert stage.log_in("ann", "secret-of-ann").identity is not None, "and nobody is slowed down for it"
    stage.decide(stage.logins.begin(Credentials("ann", "wrong", peer=PEER, asks_first=True), lambda: None))
    assert stage.counts.failures == 1


def test_no_line_of_the_log_contains_a_password(stage: Stage) -> None:
    stage.log_in("ann", "secret-of-bob")
    stage.log_in("n" * 500, "p")
    lines = [line for line, _ in stage.complaints]
    assert lines[0] == "warning: login of 'ann' refused: User name or password is invalid"
    assert len(lines[1]) < 200
    assert not any("secret" in line for line in lines)
    assert "secret" not in repr(stage.users.asked[0])


def test_a_few_wrong_passwords_cost_nothing_and_more_cost_ever_more(stage: Stage) -> None:
    for number in range(FREE):
        assert stage.log_in("ann", f"wrong {number}").refusal
    pauses = []
    for number in range(8):
        stage.decide(stage.begin("ann", f"more {number}")) if number == 0 else None
        began_ms = stage.time.now_ms
        login = stage.begin("ann", f"next {number}")
        while len(stage.users.asked) < FREE + 2 + number:
            assert not login.may_go_on
            stage.time.advance(PAUSE_MS)
            assert stage.time.now_ms - began_ms <= PAUSE_MS_MAX
            if stage.logins._running:
                break
        stage.decide(login)
        pauses.append(stage.time.now_ms - began_ms)
    assert pauses == [200, 400, 800, 1600, 3200, 5000, 5000, 5000]


def test_a_pause_is_for_one_peer_only(stage: Stage) -> None:
    stage.fail(FREE + 3)
    stage.begin("ann", "wrong again")
    stage.time.advance(PAUSE_MS_MAX)
    stage.run_one()
    slowed = stage.begin("ann", "secret-of-ann")
    free = stage.begin("bob", "secret-of-bob", OTHER_PEER)
    stage.decide(free)
    assert free.identity is not None
    assert not slowed.may_go_on
    stage.time.advance(PAUSE_MS_MAX)
    assert stage.decide(slowed).identity is not None


def test_a_program_with_an_old_password_slows_nobody_down(stage: Stage) -> None:
    for _ in range(50):
        stage.log_in("ann", "an old one")
        stage.time.advance(11_000)
    asked = len(stage.users.asked)
    stage.begin("bob", "secret-of-bob")
    assert stage.counts.waiting == 1
    stage.run_one()
    assert len(stage.users.asked) == asked + 1


def test_remembered_logins_are_not_slowed(stage: Stage) -> None:
    stage.log_in("ann", "secret-of-ann", OTHER_PEER)
    for number in range(FREE + 1):
        stage.log_in("bob", f"wrong {number}")
    assert not stage.begin("bob", "secret-of-bob").may_go_on
    assert stage.begin("ann", "secret-of-ann").identity is not None


def test_answers_do_not_come_as_fast_as_guesses(stage: Stage) -> None:
    """Even the right password is refused while too many guesses of its peer wait, and those who leave do not make room
    for others.
    """
    stage.log_in("ann", "secret-of-ann", OTHER_PEER)
    for number in range(FREE + 1):
        stage.log_in("ann", f"wrong {number}")
    for number in range(HELD_OF_ONE_MAX):
        stage.begin("ann", f"guess {number}").is_given_up = True
    right = stage.begin("ann", "secret-of-ann")
    assert right.is_open
    assert "Too many logins from your address wait" in right.refusal
    assert stage.counts.refusals["slowed"] == 1
    assert stage.begin("ann", "secret-of-ann", OTHER_PEER).identity is not None
    stage.time.advance(PAUSE_MS_MAX)
    assert stage.begin("ann", "secret-of-ann").identity is not None


def test_a_peer_that_behaves_for_some_minutes_begins_anew(stage: Stage) -> None:
    stage.fail(FREE + 6)
    stage.time.advance(FORGET_MS)
    for number in range(FREE):
        assert stage.log_in("ann", f"later {number}").refusal


def test_the_pause_holds_no_thread(stage: Stage) -> None:
    stage.fail(FREE + 3)
    waiting = [stage.begin("ann", "a new guess")]
    stage.time.advance(PAUSE_MS_MAX)
    stage.decide(waiting[0])
    for number in range(THREADS * 2):
        waiting.append(stage.begin("ann", f"guess {number}"))
    assert stage.logins._running == 0
    assert stage.log_in("bob", "secret-of-bob", OTHER_PEER).identity is not None


def test_peers_take_turns_at_the_threads(stage: Stage) -> None:
    stage.users.may_answer.clear()
    for number in range(THREADS + 20):
        stage.begin(f"nobody{number}", "x")
    late = stage.begin("bob", "secret-of-bob", OTHER_PEER)
    stage.users.may_answer.set()
    stage.decide(late)
    assert len(stage.users.asked) <= 2 * THREADS + 2


def test_too_many_that_wait_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "WAITING_MAX", 5)
    monkeypatch.setattr(desk_module, "WAITING_OF_ONE_MAX", 3)
    stage.users.may_answer.clear()
    logins = [stage.begin(f"nobody{number}", "x") for number in range(THREADS + 4)]
    assert [login.refusal for login in logins[-2:]] == ["", "Too many logins are waiting; try again later"]
    others = [stage.begin(f"nobody{number}", "x", OTHER_PEER) for number in range(100, 104)]
    assert [bool(login.refusal) for login in others] == [False, False, True, True]
    assert stage.counts.refusals["busy"] == 3
    assert all(login.is_open for login in others[2:])
    stage.users.may_answer.set()
    for login in logins[:-1] + others[:2]:
        stage.decide(login)
    assert stage.counts.waiting == 0


def test_who_finds_no_thread_in_time_is_told(stage: Stage) -> None:
    """A directory that does not answer keeps all threads: nobody waits for them without an end, nor is anybody refused
    whose login is being checked.
    """
    stage.users.may_answer.clear()
    checked = [stage.begin("ann", f"{number}") for number in range(THREADS)]
    stage.time.advance(5_000)
    late = [stage.begin("ann", f"late {number}", wake=f"late {number}") for number in range(2)]
    stage.time.advance(5_000)
    later = stage.begin("bob", "secret-of-bob", OTHER_PEER)
    stage.time.advance(4_000)
    assert [login.refusal for login in late] == ["Too many logins are waiting; try again later"] * 2
    assert all(login.is_open for login in late), "their password may be right"
    assert stage.woken == ["late 0", "late 1"]
    told, kind = stage.complaints[-1]
    assert (kind, told.endswith("in 8 s none of the 4 threads that check logins was free")) == ("login busy", True)
    assert not later.may_go_on
    stage.users.may_answer.set()
    for login in checked:
        stage.decide(login)
    assert stage.decide(later).identity is not None
    assert stage.counts.waiting == 0


def test_a_place_in_line_that_was_given_up_is_free() -> None:
    lines, waiter = desk_module.WaitingLogins(), desk_module.Waiter(Login(), lambda: None, "", "", PEER)
    for number in range(3):
        lines.add(desk_module.Attempt(Credentials("ann", "x"), b"", waiter), number)
    assert [attempt.since_ms for attempt in lines.take_late(1)] == [0, 1]
    assert (len(lines), lines.length_of(PEER), lines.has_next) == (1, 1, True)
    assert len(lines.take_late(2)) == 1
    assert (len(lines), lines.length_of(PEER), lines.has_next) == (0, 0, False)


def test_nobody_is_asked_for_a_client_that_left(stage: Stage) -> None:
    stage.users.may_answer.clear()
    running = [stage.begin(f"nobody{number}", "x") for number in range(THREADS)]
    gone = stage.begin("ann", "secret-of-ann")
    gone.is_given_up = True
    stage.users.may_answer.set()
    for login in running:
        stage.decide(login)
    assert stage.counts.waiting == 0
    assert all(credentials.user != "ann" for credentials in stage.users.asked)


def test_a_login_that_ends_is_not_remembered_longer(stage: Stage) -> None:
    stage.users.expires_ms = START_MS + 3_000
    assert stage.log_in("ann", "secret-of-ann").identity is not None
    stage.time.advance(2_999)
    assert stage.begin("ann", "secret-of-ann").identity is not None
    stage.time.advance(1)
    assert not stage.begin("ann", "secret-of-ann").may_go_on


def test_who_waits_for_an_authenticator_holds_no_thread(stage: Stage) -> None:
    """Many logins that cannot be decided yet, such as with tokens whose keys are being fetched."""
    stage.users.failure = NotYetError("the keys are being fetched")
    early = [stage.begin("ann", f"token {number}") for number in range(3 * THREADS)]
    for _ in early:
        stage.run_one()
    assert len(stage.users.asked) == len(early)
    assert not any(login.may_go_on for login in early)
    assert stage.counts.waiting == len(early)
    stage.users.failure = None
    assert stage.log_in("ann", "secret-of-ann").identity is not None, "another one waits for nobody"
    stage.users.passwords["ann"] = "token 0"
    stage.time.advance(round(AGAIN_S * 1000))
    for login in early:
        stage.decide(login)
    assert [login.identity is not None for login in early] == [True] + [False] * (len(early) - 1)
    assert stage.counts.waiting == 0


def test_those_that_wait_beside_the_line_count_in_its_limit(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "WAITING_OF_ONE_MAX", 2)
    stage.users.failure = NotYetError("the keys are being fetched")
    for number in range(2):
        stage.begin("ann", f"token {number}")
        stage.run_one()
    refused = stage.begin("ann", "token 2")
    assert refused.refusal == "Too many logins are waiting; try again later"
    assert not stage.begin("ann", "token 3", OTHER_PEER).may_go_on


def test_a_client_that_left_is_not_asked_about_again(stage: Stage) -> None:
    stage.users.failure = NotYetError("the keys are being fetched")
    login = stage.begin("ann", "token")
    stage.run_one()
    login.is_given_up = True
    stage.time.advance(round(AGAIN_S * 1000))
    assert (len(stage.users.asked), stage.counts.waiting) == (1, 0)


def test_what_is_wrong_with_a_token_is_said_and_remembered(stage: Stage) -> None:
    stage.users.failure = CredentialsRefusedError("the token expired at noon")
    for _ in range(2):
        login = stage.log_in(None, "token")
        assert (login.refusal, login.is_open) == ("the token expired at noon", False)
    assert len(stage.users.asked) == 1
    assert stage.counts.refusals["invalid"] == 2
    assert stage.complaints[0] == ("warning: login without a name refused: the token expired at noon", "login invalid")
