"""The transitions of a scope, each different one once: keys before, the call, its reply, keys after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from model.explore import Exploration, Violation
from model.operation import Operation, Reply
from model.scope import Scope
from model.situation import Key, key_of
from model.state import State


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of the keys. ``wait`` is time; workers are left out, for no server knows them."""

    before: State
    operation: Operation
    reply: Reply
    after: State

    def under(self, prefix: bytes) -> Operation:
        """The operation, under another prefix."""
        args = self.operation.args
        return replace(self.operation, args={**args, "prefix": prefix}) if args else self.operation


@dataclass
class Transitions:
    """All transitions of a scope that a server can tell apart, and how many there are of them all."""

    exploration: Exploration
    found: list[Transition]
    all: int

    def __str__(self) -> str:
        return f"{self.all:,} of them change or ask the keys, {len(self.found):,} in different ways"


def collect(scope: Scope, progress: Callable[[int, int], None] | None = None, *, whole: bool = True) -> Transitions:
    """Explores the scope and keeps its transitions. Raises Violation; not ``whole``: not for what it did not see."""
    found: dict[tuple[Key, str, tuple[object, ...]], Transition] = {}
    count = 0

    def visit(before: State, operation: Operation, after: State, reply: Reply) -> None:
        nonlocal count
        count += 1
        asked = operation.to_argv() if operation.is_script else tuple(operation.args.items())
        name = (key_of(before), operation.op, asked)
        if name not in found:
            found[name] = Transition(before, operation, reply, after)

    exploration = Exploration(scope, visit=visit)
    try:
        exploration.run(progress)
    except Violation as violation:
        if whole or violation.trace:
            raise
    return Transitions(exploration, list(found.values()), count)
