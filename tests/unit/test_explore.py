"""The exploration of the model: what it reaches, what it must see, and the bad designs it finds out."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace

import pytest

from model import explore
from model.explore import Design, Exploration, Violation
from model.foreign import foreign
from model.operation import Delivery, Ok, Operation, Reply
from model.promises import Step
from model.run import step
from model.scope import Scope
from model.situation import GONE, NOW_MS, canonical, start
from model.state import Lock, State
from tests.exploration.designs import round_trips
from tests.support.designs import designs

TINY = Scope(tiers=1, messages=2)
ALONE = replace(TINY, groups=1, workers=1)


def test_a_tiny_scope_is_explored_whole() -> None:
    """Every situation is reached once, everything holds, and the counts are what they were."""
    exploration = Exploration(TINY)
    exploration.run()
    assert (exploration.states, exploration.transitions, exploration.depth) == (741, 5_826, 12)
    assert all(exploration.seen[name] for name in exploration.must_see())


@pytest.mark.parametrize(
    ("scope", "missing"),
    [
        (
            ALONE,
            [
                "a lease ended and its group was claimed again",
                "a lease that was over was refused, while another held the group",
                "a repair happened",
            ],
        ),
        (replace(ALONE, workers=2, skew_ms=3), ["a repair happened"]),
        (replace(ALONE, workers=2, foreign=1), ["a repair happened"]),
    ],
)
def test_a_search_that_sees_too_little_is_none(scope: Scope, missing: list[str]) -> None:
    """With one group no promise is broken, whatever clocks and foreigners do; but what takes two is named as unseen."""
    with pytest.raises(Violation) as found:
        Exploration(scope).run()
    assert found.value.trace == []
    unseen = found.value.broken[0].removeprefix("EMPTY: the search never saw that ").split("; that ")
    assert set(unseen) == {"two groups were in flight at once", "a tie was broken", *missing}


def test_every_transition_is_shown() -> None:
    """The visitor sees each change of the keys, the passing of time too."""
    shown: list[str] = []
    exploration = Exploration(replace(TINY, messages=1), visit=lambda *step: shown.append(step[1].op))
    with pytest.raises(Violation, match="EMPTY"):
        exploration.run()
    assert {"publish", "claim", "ack", "nack", "extend", "wait"} == set(shown)


def test_workers_have_no_names() -> None:
    """Two situations that differ in which worker holds the lease are one."""
    worker = explore.Worker(b"a", NOW_MS + 1)
    state = State(NOW_MS, {b"a": (b"m",)}, {b"a": Lock(b"t1", NOW_MS + 1)}, ({b"a": NOW_MS + 1}, {}, {}, {}, {}))
    one = replace(start(TINY), state=state).told(1, worker)
    two = replace(start(TINY), state=replace(state, locks={b"a": Lock(b"t0", NOW_MS + 1)})).told(0, worker)
    assert canonical(one, TINY)[0] == canonical(two, TINY)[0]
    assert canonical(one, TINY)[1] == [1, 0]


def test_the_past_keeps_its_order_only() -> None:
    """Scores that no clock of the scope tells apart from now are one situation, those of a slow clock are not."""
    tiers = ({b"a": 3, b"b": 997}, {}, {}, {}, {})
    past = replace(start(TINY), state=State(NOW_MS, {}, {}, tiers))
    assert canonical(past, TINY)[0].state.ready[0] == {b"a": 998, b"b": 999}
    assert canonical(past, replace(TINY, skew_ms=4))[0].state.ready[0] == {b"a": 995, b"b": 997}


def bad(op: str, change: Callable[[State, Operation, State, Reply], tuple[State, Reply]]) -> Step:
    """The model, with one operation gone wrong."""

    def wrong(state: State, operation: Operation) -> tuple[State, Reply]:
        after, reply = step(state, operation)
        return change(state, operation, after, reply) if operation.op == op else (after, reply)

    return wrong


def another_message(state: State, operation: Operation, after: State, reply: Reply) -> tuple[State, Reply]:
    """A claim that delivers the newest message."""
    if isinstance(reply, Ok) and isinstance(reply.value, Delivery):
        return after, Ok(Delivery(reply.value.group, (state.messages(reply.value.group) or (b"",))[-1]))
    return after, reply


def held(state: State, operation: Operation, after: State, reply: Reply) -> tuple[State, Reply]:
    """A claim that looks at no lock."""
    return step(replace(state, locks={}), operation)


def dead(state: State) -> bool:
    """Whether a lease is one that nobody remembers."""
    return any(lock.value == GONE for lock in state.locks.values())


BAD: dict[str, tuple[Step, str, int]] = {
    "loses a message": (bad("nack", lambda s, o, a, r: (a.lpop(b"a") if r == Ok(1) else a, r)), "LOST: nack", 3),
    "stores a message twice": (bad("publish", lambda s, o, a, r: (a.rpush(b"a", b"x"), r)), "LOST: publish", 1),
    "counts wrongly": (bad("publish", lambda s, o, a, r: (a, Ok(7))), "LOST: publish answers 7", 1),
    "delivers the newest": (bad("claim", another_message), "FIFO", 3),
    "looks at no lock": (bad("claim", held), "EXCLUSIVE", 3),
    "finds nothing": (bad("claim", lambda s, o, a, r: (s, Ok(None))), "DRAINED", 1),
    "acks nothing": (bad("ack", lambda s, o, a, r: (s, r)), "DRAINED", 1),
    "acks by giving back": (bad("ack", lambda s, o, a, r: step(s, replace(o, op="nack"))), "DRAINED", 1),
    "accepts every nack": (bad("nack", lambda s, o, a, r: (a, Ok(1))), "FENCE", 4),
    "minds the dead": (bad("publish", lambda s, o, a, r: (s if dead(s) else a, r)), "LOST: publish", 3),
    "refuses every renewal": (bad("extend", lambda s, o, a, r: (s, Ok(0))), "LEASE", 3),
    "leaves the field": (bad("ack", lambda s, o, a, r: (a.hset(b"z", 0) if r == Ok(1) else a, r)), "INV-DRAIN", 3),
    "renews for ever": (
        bad("extend", lambda s, o, a, r: (foreign(a, Operation("persist-lock", NOW_MS, {"group": b"a"})), r)),
        "INV-TTL",
        3,
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_design_is_found_out(name: str) -> None:
    """A design with one fault breaks the promise named for it, and the shortest trace says how."""
    wrong, rule, steps = BAD[name]
    with pytest.raises(Violation) as found:
        Exploration(TINY, Design(wrong), rule=rule).run()
    assert found.value.broken[0].startswith(rule)
    assert len(found.value.trace) == steps


@pytest.mark.parametrize(
    ("name", "scope", "rule", "steps"),
    [
        ("two-step-nack", replace(TINY, messages=1, workers=3), "EXCLUSIVE", 8),
        ("two-step-nack", replace(TINY, messages=1), "LEASE", 8),
        ("original", replace(TINY, messages=1), "FENCE", 7),
    ],
)
def test_a_nack_of_several_round_trips(name: str, scope: Scope, rule: str, steps: int) -> None:
    """Between the round trips of a nack its lease ends: two workers hold one group, or the new holder loses it."""
    design = next(one for one in designs() if one.name == name)
    with pytest.raises(Violation) as found:
        Exploration(scope, Design(trip=round_trips(design)), rule=rule).run()
    assert found.value.broken[0].startswith(rule)
    assert len(found.value.trace) == steps
    assert any(line.startswith("# ") and "round trip 1" in line for line in found.value.trace)


def test_traces_carry_the_callers_clock() -> None:
    """A trace shows the clock a caller gave, in the time of the trace."""

    def behind(state: State, operation: Operation) -> tuple[State, Reply]:
        """A claim by a slow clock is told nothing."""
        if operation.op == "claim" and operation["now_ms"] == state.now_ms - 3:
            return state, Ok(None)
        return step(state, operation)

    with pytest.raises(Violation, match=r"1000 +claim now_ms=997 .* -> nil"):
        Exploration(replace(TINY, skew_ms=3), Design(behind)).run()


def test_the_keys_of_a_design_may_lie_otherwise() -> None:
    """What a design's keys stand for is judged, not how it lays them out."""
    with pytest.raises(Violation, match="INV-INDEX"):
        Exploration(TINY, Design(seen=lambda state: state.zrem(0, b"a"))).run()


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints scope, counts and what was seen, with progress on a terminal; 0 if all holds."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert explore.main(["--scope", "small", "--tiers", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("scope: groups=2, tiers=1, messages=2, ")
    assert "741 states, 5,826 transitions, depth 12, " in out
    assert "times: a repair happened" in out
    assert "states, depth 1 " in err


def test_the_command_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that shows less than it must is a violation; the exit code is 1."""
    monkeypatch.setattr("sys.argv", ["explore", "--scope", "small", "--messages", "1"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(explore.__file__, run_name="__main__")
    assert ended.value.code == 1
    assert "VIOLATION after" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tiers", "6"], "tiers is 6: it must be from 1 to 5"),
        (["--candidates", "0"], "candidates is 0: it must be from 1 to 99"),
        (["--messages", "-1"], "messages is -1: it must be from 1 to 99"),
    ],
)
def test_a_scope_that_is_none(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    """A bound that the queue cannot have is an error of the command line, told before anything is explored."""
    with pytest.raises(SystemExit) as ended:
        explore.main(words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
