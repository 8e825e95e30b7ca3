"""A trial on a server whose clock cannot be set: time passes by shifting what is stored, and runs on by itself.

A call ran at some instant between two readings of the clock. It agrees with the model if the model, run at one of the
instants of that bracket, replies the same and ends in the same keys, with scores and deadlines off by no more than the
bracket is wide. The model then goes on from what the server holds. Exact boundaries are left to the virtual clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from model.operation import PREFIX, Error, Operation, Reply, Unsupported, Value
from model.run import World
from model.state import Lock, State
from tests.support.outcome import Failure, kind_of
from tests.support.reached import reached
from tests.support.trial import Divergence, Tally, Trial
from tests.support.witness import OnHost, Witness

WIDEST_MS = 200  # a bracket wider than this says nothing: the machine was too busy to judge


class ShiftedTrial(Trial):
    """Like ``Trial``, for one witness; ``start_ms`` of the trace is the present of the server."""

    def __init__(self, witness: OnHost, start_ms: int, prefixes: Sequence[bytes], tally: Tally | None = None) -> None:
        self.witness = witness
        self.clock = witness.host.clock
        self.clock.prefixes = list(prefixes)
        self.read_ms = 0
        super().__init__([], start_ms, prefixes, tally)
        with witness.running():
            witness.client.flushdb()
        self.delta_ms = self.clock.now_ms() - start_ms
        self.world = World(self.clock.now_ms())

    @property
    def now_ms(self) -> int:
        return self.world.now_ms - self.delta_ms

    def do(self, operation: Operation) -> Reply:
        due_ms = operation.time_ms + self.delta_ms
        if due_ms > self.clock.now_ms():
            self.clock.set_ms(due_ms)
            self.world = World(self.clock.now_ms(), self._read())
        with self.clock.bracket() as bracket:
            got = self.witness.perform(self._as_stored(operation))
        last_read_ms = self.read_ms
        states = self._read()
        until_ms = self.clock.now_ms()
        # What the last read could not tell apart is still in the numbers the model went on from.
        width_ms = until_ms - bracket.before_ms + last_read_ms + 2
        before = self.world.state(operation.prefix if operation.prefix in self.prefixes else self.prefixes[0])
        tried: list[tuple[World, Reply]] = []
        for instant_ms in range(bracket.before_ms, min(bracket.after_ms, bracket.before_ms + WIDEST_MS) + 1):
            world, reply = self.world.step(self._at(operation, instant_ms))
            tried.append((world, reply))
            unasked = isinstance(got, Unsupported) and isinstance(reply, Error)
            if (unasked or self.witness.agrees(operation, reply, got)) and self._near(world, states, width_ms):
                break
        else:
            self._fail(operation, got, *tried[-1], states, width_ms)
        world, reply = tried[-1]
        self.steps.append((operation, reply))
        self.tally.steps += 1
        self.tally.reached.update(reached(before, operation, reply, world.state(operation.prefix)))
        self.tally.operations[self.witness.name, operation.op] += 1
        self.world = World(until_ms, states)
        return reply

    def _read(self) -> Mapping[bytes, State]:
        """The key space with its scores as instants of the test."""
        with self.clock.bracket() as bracket:
            states = self.witness.read(self.prefixes)
        self.read_ms = bracket.after_ms - bracket.before_ms
        return {
            prefix: replace(state, ready=tuple({g: self._seen(s) for g, s in tier.items()} for tier in state.ready))
            for prefix, state in states.items()
        }

    def _seen(self, score: int) -> int:
        return score + self.clock.offset_ms if score > 0 else score

    def _at(self, operation: Operation, instant_ms: int) -> Operation:
        """The operation at an instant of the server, its own instants moved likewise."""
        return replace(operation, time_ms=instant_ms, args=moved(operation.args, self.delta_ms))

    def _as_stored(self, operation: Operation) -> Operation:
        return replace(operation, args=moved(operation.args, self.delta_ms - self.clock.offset_ms))

    def _near(self, world: World, states: Mapping[bytes, State], width_ms: int) -> bool:
        return not any(self._rows(world, states, width_ms).values())

    def _rows(self, world: World, states: Mapping[bytes, State], width_ms: int) -> dict[bytes, list[str]]:
        return {
            prefix: self.witness.difference(_snapped(world.state(prefix), states[prefix], width_ms), states[prefix])
            for prefix in self.prefixes
        }

    def _fail(
        self,
        operation: Operation,
        got: Reply,
        world: World,
        expected: Reply,
        states: Mapping[bytes, State],
        width_ms: int,
    ) -> None:
        self.steps.append((operation, expected))
        rows = self._rows(world, states, width_ms)
        rule = f"MODEL: reply and keys are the model's, within the {width_ms} ms that the clock cannot tell apart"
        found = Failure(kind_of(got, agrees=self.witness.agrees(operation, expected, got)), rules=(rule,))
        self._diverge(self.witness.name, expected, got, rows, found)


def moved(args: Mapping[str, Value], by_ms: int) -> dict[str, Value]:
    """Arguments with the instants that the caller gave moved; 0 is none."""
    return {
        name: value + by_ms if name in ("now_ms", "score_ms") and isinstance(value, int) and value else value
        for name, value in args.items()
    }


def _snapped(expected: State, got: State, width_ms: int) -> State:
    """The expected state with each number replaced by the server's where the two are too close to be told apart."""

    def near(want: int | None, have: int | None) -> bool:
        return want is not None and have is not None and abs(want - have) <= width_ms

    locks = {}
    for group, lock in expected.locks.items():
        other = got.locks.get(group, Lock(lock.value, got.now_ms))  # gone: as if it ended just now
        locks[group] = Lock(lock.value, other.deadline_ms) if near(lock.deadline_ms, other.deadline_ms) else lock
    locks = {group: lock for group, lock in locks.items() if group in got.locks or lock.deadline_ms != got.now_ms}
    ready = tuple(
        {g: have.get(g, s) if near(s, have.get(g)) else s for g, s in want.items()}
        for want, have in zip(expected.ready, got.ready, strict=True)
    )
    return replace(expected, now_ms=got.now_ms, locks=locks, ready=ready)


def trial(witnesses: Sequence[Witness], start_ms: int, prefixes: Sequence[bytes], tally: Tally | None = None) -> Trial:
    """The trial that the witnesses' clocks allow; one whose clock cannot be set runs on its own."""
    if all(witness.exact for witness in witnesses):
        return Trial(witnesses, start_ms, prefixes, tally)
    (witness,) = witnesses
    assert isinstance(witness, OnHost)
    return ShiftedTrial(witness, start_ms, prefixes, tally)


def replay(
    operations: Sequence[Operation], witnesses: Sequence[Witness], tally: Tally | None = None
) -> Divergence | None:
    """Performs a trace on the witnesses; how it diverges, or None when all agree with the model."""
    prefixes = list(dict.fromkeys(operation.prefix for operation in operations if operation.op != "wait"))
    run = trial(witnesses, operations[0].time_ms, [prefix for prefix in prefixes if prefix] or [PREFIX], tally)
    try:
        for operation in operations:
            run.do(operation)
    except Divergence as divergence:
        return divergence
    return None
