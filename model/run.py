"""One step of the model: an operation on a server that holds the queues of any number of prefixes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from model.ack import ack
from model.claim import claim
from model.extend import extend
from model.foreign import foreign
from model.nack import nack
from model.operation import ARGV, Ok, Operation, Reply
from model.publish import publish
from model.state import State

SCRIPTS: Mapping[str, Callable[[State, Sequence[bytes]], tuple[State, Reply]]] = {
    "publish": publish,
    "claim": claim,
    "ack": ack,
    "nack": nack,
    "extend": extend,
}
assert SCRIPTS.keys() == ARGV.keys()


@dataclass(frozen=True, slots=True)
class World:
    """A server: its clock, and the state of each prefix."""

    now_ms: int = 0
    states: Mapping[bytes, State] = field(default_factory=dict)

    def state(self, prefix: bytes) -> State:
        """The state of one prefix, now."""
        return self.states.get(prefix, State()).at(self.now_ms)

    def step(self, operation: Operation) -> tuple[World, Reply]:
        """The world after the operation, with the clock at the operation's time, and the reply.

        A clock that steps back finds every expired lock already removed, as after a read of each.
        """
        states = self.states
        if operation.time_ms < self.now_ms:
            states = {prefix: state.at(self.now_ms).expired() for prefix, state in states.items()}
        if operation.op == "wait":
            return World(operation.time_ms, states), Ok(None)
        state, reply = step(World(operation.time_ms, states).state(operation.prefix), operation)
        return World(operation.time_ms, {**states, operation.prefix: state}), reply


def step(state: State, operation: Operation) -> tuple[State, Reply]:
    """The state of the operation's prefix after it, and the reply; the state's clock is the server's."""
    if operation.is_script:
        return SCRIPTS[operation.op](state, operation.to_argv())
    return foreign(state, operation), Ok(None)
