"""An audit raises no false alarm in any situation of a scope, and heals whatever foreign writes leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from model import invariants
from model.audit import Found, audit
from model.explore import Exploration, Violation
from model.operation import Operation, Reply
from model.scope import Scope
from model.situation import key_of
from model.state import State

PREFIX = b"p"
Audit = Callable[[State, bytes, int], tuple[State, Found]]


def heal(state: State, group: bytes, tolerance_ms: int) -> tuple[State, Found]:
    """The model's repair."""
    return audit(state, PREFIX, group, tolerance_ms, repair=True)


def reached(scope: Scope) -> list[State]:
    """Every state of the keys in a scope."""
    found: dict[object, State] = {}

    def visit(before: State, _operation: Operation, after: State, _reply: Reply) -> None:
        for state in (before, after):
            found.setdefault((state.now_ms, key_of(state)), state)

    try:
        Exploration(scope, visit=visit).run()
    except Violation as violation:  # these scopes are too small to see all that a search must see
        if violation.trace:
            raise
    return list(found.values())


def groups(state: State) -> set[bytes]:
    """All that an audit would come across."""
    return {*state.queues, *state.locks, *state.prio, *(group for tier in state.ready for group in tier)}


def alarms(states: list[State], tolerance_ms: int, examine: Audit = heal) -> list[str]:
    """What an audit finds in each state."""
    return [
        found[0][0] for state in states for group in groups(state) if (found := examine(state, group, tolerance_ms)[1])
    ]


def unhealed(states: list[State], examine: Audit = heal) -> list[str]:
    """What is wrong after a repair: an invariant, a message or a live lease that it touched, or a second finding."""
    wrong = []
    for before in states:
        after = before
        for group in groups(before):
            after, _ = examine(after, group, 0)
        # A lease of messages that somebody deleted goes on to its end.
        orphans = {group for group in after.locks if group not in after.queues}
        kept = {group: lock for group, lock in after.locks.items() if group not in orphans}
        wrong += invariants.of_state(replace(after, locks=kept))
        wrong += [f"AGAIN {group!r}" for group in groups(after) if audit(after, PREFIX, group, 0, repair=False)[1]]
        wrong += ["MESSAGES"] * (after.queues != before.queues)
        ending = {group: lock for group, lock in before.expired().locks.items() if lock.deadline_ms is not None}
        wrong += [f"LEASE {group!r}" for group, lock in ending.items() if after.locks.get(group) != lock]
    return wrong


@pytest.mark.parametrize(
    ("scope", "tolerance_ms"), [(Scope(messages=3, arrival=1), 0), (Scope(groups=1, messages=2, skew_ms=3), 3)], ids=str
)
def test_no_false_alarm(scope: Scope, tolerance_ms: int) -> None:
    """In every state that the scripts reach, clocks within the tolerance, an audit finds nothing."""
    states = reached(scope)
    assert len(states) > 300
    assert alarms(states, tolerance_ms) == []


def test_a_tolerance_too_small_alarms() -> None:
    """The same search finds something once the clocks differ by more than the tolerance."""
    assert set(alarms(reached(Scope(groups=1, messages=2, skew_ms=3)), 1)) == {"score-ahead"}


@pytest.fixture(scope="module")
def spoilt() -> list[State]:
    """Every state of one group that scripts and three foreign writes reach."""
    return reached(Scope(groups=1, messages=2, foreign=3))


def test_a_repair_heals_everything(spoilt: list[State]) -> None:
    """After a repair every invariant holds, no message and no lease was touched, and a second audit finds nothing."""
    assert len(alarms(spoilt, 0)) > 1_000
    assert unhealed(spoilt) == []


def _nothing(state: State, group: bytes, tolerance_ms: int) -> tuple[State, Found]:
    return state, []


def _too_much(state: State, group: bytes, tolerance_ms: int) -> tuple[State, Found]:
    after, found = heal(state, group, tolerance_ms)
    return (after.del_lock(group), found) if found else (after, found)


def _loses(state: State, group: bytes, tolerance_ms: int) -> tuple[State, Found]:
    after, found = heal(state, group, tolerance_ms)
    return (after.lpop(group), found) if found and after.messages(group) else (after, found)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [(_nothing, "INV-INDEX"), (_too_much, "LEASE"), (_loses, "MESSAGES")],
    ids=["nothing", "too-much", "loses"],
)
def test_a_wrong_repair_is_told(wrong: Audit, why: str, spoilt: list[State]) -> None:
    """A repair that does nothing, ends a lease or takes a message is found out."""
    assert why in {complaint.split()[0] for complaint in unhealed(spoilt, wrong)}
