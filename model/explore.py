"""Bounded exhaustive exploration: every situation that a scope can reach, by every order of events.

``python -m model.explore`` walks breadth-first through all of them with the functions of the model. It checks what must
hold in each state (``model/invariants.py``), what each transition must keep and that everything can be drained from
there (``model/promises.py``), and at the end that what must be seen sometimes was seen. A violation is told by its
shortest trace, in the notation of ``model/notation.py``. A ``Design`` is what is explored; a bad one must be found out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from model import promises
from model.notation import write
from model.operation import Ok, Operation, Reply
from model.promises import Step
from model.run import step
from model.scope import SCOPES, Scope
from model.situation import (
    NOW_MS,
    Action,
    Key,
    Situation,
    Worker,
    actions,
    canonical,
    died,
    key_of,
    later,
    start,
    token,
)
from model.state import State

Trip = Callable[[State, Operation, tuple[Any, ...]], tuple[State, tuple[Any, ...] | None]]
OWN = b"its own token"
Visit = Callable[[State, Operation, State, Reply], None]


class Violation(AssertionError):
    """Something that must always hold does not: what, and the shortest trace to it."""

    def __init__(self, broken: Sequence[str], trace: Sequence[str] = ()) -> None:
        super().__init__("\n".join([*broken, "", *trace]))
        self.broken = list(broken)
        self.trace = list(trace)


@dataclass(frozen=True)
class Design:
    """What is explored: by default the model.

    ``trip``: a nack of several round trips. It does the next one, given the replies so far, and returns all replies,
    or None when it is done. ``seen``: where its keys are laid out otherwise, the state that they stand for.
    """

    step: Step = step
    trip: Trip | None = None
    seen: Callable[[State], State] = lambda state: state


@dataclass
class Exploration:
    """A walk through a scope; ``run`` does all of it.

    ``visit`` is shown every transition of the keys, time included. ``rule``: only what begins with it is a violation.
    """

    scope: Scope
    design: Design = field(default_factory=Design)
    visit: Visit | None = None
    rule: str = ""
    parents: dict[Key, tuple[Key | None, Action | None]] = field(default_factory=dict)
    transitions: int = 0
    depth: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    _judged: set[Key] = field(default_factory=set)

    @property
    def states(self) -> int:
        """How many situations were reached."""
        return len(self.parents)

    def run(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Reaches everything. Raises Violation."""
        first, _ = canonical(start(self.scope), self.scope)
        self.parents[first.key()] = (None, None)
        level = [first]
        while level:
            level = list(self._next(level, progress))
            self.depth += bool(level)
        missing = [name for name in self.must_see() if not self.seen[name]]
        if missing:
            raise Violation([f"EMPTY: the search never saw that {'; that '.join(missing)}"])

    def must_see(self) -> tuple[str, ...]:
        """What a search of this scope must have seen."""
        return promises.SOMETIMES + (promises.IF_FOREIGN if self.scope.foreign else ())

    def _next(self, level: Sequence[Situation], progress: Callable[[int, int], None] | None) -> Iterator[Situation]:
        """The new situations one step further."""
        for number, situation in enumerate(level):
            if progress is not None and number % 256 == 0:
                progress(self.states, self.depth)
            key = situation.key()
            self._judge(situation, key)
            for action in actions(situation, self.scope):
                self.transitions += 1
                after, broken = self._do(situation, action)
                self._hold(broken, key, action)
                found, _ = canonical(after, self.scope)
                name = found.key()
                if name not in self.parents:
                    self.parents[name] = (key, action)
                    yield found

    def _judge(self, situation: Situation, key: Key) -> None:
        """What must hold in the state by itself; once for all situations with the same keys."""
        name = key_of(situation.state)
        if name in self._judged:
            return
        self._judged.add(name)
        foreign = self.scope.foreign > 0
        broken = promises.wrong(self.design.seen(situation.state), foreign=foreign)
        claims = 4 * (self.scope.messages + self.scope.groups * len(situation.state.ready))
        broken += promises.left(promises.drained(self.design.step, situation.state, claims), foreign=foreign)
        self._hold(broken, key, None)

    def _hold(self, broken: Sequence[str], key: Key, action: Action | None) -> None:
        if told := [rule for rule in broken if rule.startswith(self.rule)]:
            raise Violation(told, self._trace(key, action))

    def _do(self, situation: Situation, action: Action) -> tuple[Situation, list[str]]:
        """The situation after an action, and the promises that it breaks."""
        operation, number = action.operation, action.worker
        if action.name == "time":
            if self.visit is not None:
                soon_ms = NOW_MS + 1
                self.visit(situation.state, Operation("wait", soon_ms), situation.state.at(soon_ms), Ok(None))
            return later(situation), []
        if action.name == "die":
            return died(situation, number), []
        if action.name == "go-on":
            return self._trip(situation, number), []
        assert operation is not None
        if self.design.trip is not None and operation.op == "nack":
            worker = replace(situation.workers[number], pending=(operation["delay_ms"],))
            return self._trip(situation.told(number, worker), number), []
        state, reply = self.design.step(situation.state, operation)
        if self.visit is not None:
            self.visit(situation.state, operation, state, reply)
        after = replace(situation, state=state)
        if action.name == "foreign":
            spoilt = {_group(operation)} if operation.op.endswith("-lock") else set()
            return replace(after, foreign=after.foreign - 1, spoilt=after.spoilt | spoilt), []
        self.seen.update(promises.noticed(situation, number, operation, reply, state))
        before = replace(situation, state=self.design.seen(situation.state))
        broken = list(promises.broken(before, number, operation, reply, self.design.seen(state)))
        if number < 0:
            return replace(after, messages=after.messages - 1), broken
        return after.told(number, promises.believes(situation.workers[number], operation, reply)), broken

    def _trip(self, situation: Situation, number: int) -> Situation:
        """The next round trip of a worker's nack."""
        worker = situation.workers[number]
        delay_ms, *replies = worker.pending
        state, got = self._next_trip(situation.state, worker.group, token(number), delay_ms, replies)
        told = Worker(worker.group) if got is None else replace(worker, pending=(delay_ms, *got))
        return replace(situation, state=state).told(number, told)

    def _next_trip(
        self, state: State, group: bytes, mine: bytes, delay_ms: Any, replies: Sequence[Any]
    ) -> tuple[State, list[Any] | None]:
        """The replies of earlier trips are kept without the token's name, which a worker has only for a while."""
        assert self.design.trip is not None
        nack = Operation("nack", state.now_ms, {"group": group, "token": mine, "delay_ms": delay_ms})
        state, got = self.design.trip(state, nack, tuple(mine if reply == OWN else reply for reply in replies))
        return state, None if got is None else [OWN if reply == mine else reply for reply in got]

    def _trace(self, key: Key, last: Action | None) -> list[str]:
        """The steps from the start, with a clock that runs, and a name for each lease and each message."""
        steps = [] if last is None else [last]
        parent: Key | None = key
        while parent is not None:
            parent, action = self.parents[parent]
            if action is not None:
                steps.append(action)
        return list(self._told(steps[::-1]))

    def _told(self, steps: Sequence[Action]) -> Iterator[str]:
        situation, order = canonical(start(self.scope), self.scope)
        names = [b""] * len(order)
        state, published, claims = State(NOW_MS), Counter[bytes](), 0
        nacks: dict[bytes, tuple[bytes, Any, list[Any]]] = {}
        for action in steps:
            operation, number = action.operation, action.worker
            if action.name == "time":
                state = state.at(state.now_ms + 1)
            elif action.name == "go-on" or (self.design.trip is not None and action.name == "nack"):
                name = names[number]
                if operation is not None:
                    nacks[name] = situation.workers[number].group, operation["delay_ms"], []
                group, delay_ms, replies = nacks[name]
                state, got = self._next_trip(state, group, name, delay_ms, replies)
                nacks[name] = group, delay_ms, got or []
                yield f"# {state.now_ms}: nack of {name.decode()}, delay_ms={delay_ms}, round trip {len(replies) + 1}"
            elif operation is not None:
                args = dict(operation.args)
                if action.name == "publish":
                    group = _group(operation)
                    published[group] += 1
                    args["payload"] = b"%s%d" % (group, published[group])
                elif action.name == "claim":
                    claims += 1
                    names[number] = b"T%d" % claims
                if number >= 0:
                    args["token"] = names[number]
                now_ms = args.get("now_ms")
                if isinstance(now_ms, int):
                    args["now_ms"] = now_ms - NOW_MS + state.now_ms
                named = Operation(operation.op, state.now_ms, args)
                state, reply = self.design.step(state, named)
                yield write(named, reply)
            situation, order = canonical(self._do(situation, action)[0], self.scope)
            names = [names[old] for old in order]


def _group(operation: Operation) -> bytes:
    group = operation["group"]
    assert isinstance(group, bytes)
    return group


def main(argv: Sequence[str] | None = None) -> int:
    """Explores a scope, and prints what it was and how large; the exit code is 1 for a violation."""
    parser = argparse.ArgumentParser(prog="python -m model.explore", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scope", choices=SCOPES, default="default")
    for bound in fields(Scope):
        name = bound.name.replace("_", "-")
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"instead of the scope's {name}")
    options = vars(parser.parse_args(argv))
    scope = SCOPES[options.pop("scope")]
    try:
        scope = replace(scope, **{name: value for name, value in options.items() if value is not None})
    except ValueError as error:
        parser.error(str(error))
    print(f"scope: {scope}")
    exploration, began = Exploration(scope), time.monotonic()
    try:
        exploration.run(progress if sys.stderr.isatty() else None)
    except Violation as violation:
        print(f"VIOLATION after {exploration.transitions:,} transitions\n{violation}")
        return 1
    size = f"{exploration.states:,} states, {exploration.transitions:,} transitions, depth {exploration.depth}"
    print(f"{size}, {time.monotonic() - began:.0f} s")
    for name in exploration.must_see():
        print(f"seen {exploration.seen[name]:>9,} times: {name}")
    print("every invariant holds in every state, every promise on every transition, and every state can be drained")
    return 0


def progress(states: int, depth: int) -> None:
    """Shows how far an exploration is, on a terminal."""
    print(f"\r{states:,} states, depth {depth} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
