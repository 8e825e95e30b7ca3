"""Designs as the explorer walks through them: what a folder of ``tests/designs`` changes takes the place of the model.

A changed script is a step that loads the keys into fakeredis, runs it and reads them back. A nack that is no script is
a chain of round trips, each done on the model's state by a client that knows the commands such a nack uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model.explore import Design, Trip
from model.operation import PREFIX, Operation, Reply
from model.promises import Step
from model.run import step
from model.situation import Key, key_of
from model.state import State
from tests.exploration.refine import Executor
from tests.support import designs
from tests.support.fake import FakeHost
from tests.support.original import of_old_client
from tests.support.witness import LuaFiles


def explored(name: str, folder: Path, script: str = "") -> Design:
    """The design of that name, or only one script of it; ``folder`` takes its Lua. Raises DesignError."""
    design = next(one for one in designs.designs() if one.name == name)
    ours, theirs = designs.package_scripts(), designs.changed(design, designs.package_scripts())
    changed = {op for op in designs.NAMES if theirs[f"{op}.lua"] != ours[f"{op}.lua"] and script in ("", op)}
    do = by_lua(changed, LuaFiles(designs.lay_over(design, folder)), old=name == "original") if changed else step
    trip = round_trips(design) if design.nack and script in ("", "nack") else None
    return Design(do, trip, by_field if name == "single-zset" else Design.seen)


def by_lua(changed: set[str], lua: LuaFiles, *, old: bool) -> Step:
    """These scripts from their files, called as old clients do if need be; the others are the model's."""
    executor = Executor(FakeHost(), lua)
    known: dict[tuple[int, Key, tuple[bytes, ...]], tuple[State, Reply]] = {}

    def do(state: State, operation: Operation) -> tuple[State, Reply]:
        if operation.op not in changed:
            return step(state, operation)
        if old:
            operation = of_old_client(operation)
        name = (state.now_ms, key_of(state), (operation.op.encode(), *operation.to_argv()))
        if name not in known:
            known[name] = executor.step(state, operation)
        return known[name]

    return do


def by_field(state: State) -> State:
    """One index for all tiers, told apart by the field: the entries as they would lie in five."""
    tiers: list[dict[bytes, int]] = [{} for _ in state.ready]
    for group, score in state.ready[0].items():
        tiers[state.tier_of(group) or 0][group] = score
    return State(state.now_ms, state.queues, state.locks, tuple(tiers), state.prio)


def round_trips(design: designs.Design) -> Trip:
    """The nack of a design, a round trip at a time."""
    nack = designs.load_nack(design)

    def trip(state: State, operation: Operation, replies: tuple[Any, ...]) -> tuple[State, tuple[Any, ...] | None]:
        keys = Keys(state, replies)
        group, token, delay_ms = operation["group"], operation["token"], operation["delay_ms"]
        for _ in nack(keys, PREFIX, group, token, state.now_ms, delay_ms):
            if len(keys.replies) > len(replies):
                return keys.state, tuple(keys.replies)
        return keys.state, None

    return trip


class Keys:
    """A redis-py-like client of the model's state. The first commands are answered with the replies given."""

    def __init__(self, state: State, replies: Sequence[Any]) -> None:
        self.state = state
        self.replies = list(replies)
        self._told = iter(replies)

    def execute_command(self, command: str, key: bytes, *args: Any) -> Any:
        """One round trip."""
        told = next(self._told, self)
        if told is not self:
            return told
        reply = self._do(command, key, args)
        self.replies.append(reply)
        return reply

    def _do(self, command: str, key: bytes, args: tuple[Any, ...]) -> Any:
        _, _, name = key.removeprefix(PREFIX + b":").partition(b":")
        match command, *args:
            case ("GET",):
                lock = self.state.lock(name)
                return None if lock is None else lock.value
            case "HGET", group:
                return self.state.prio.get(group)
            case "ZADD", score, group:
                self.state = self.state.zadd(int(name), score, group)
            case "SET", value, "PX", px_ms:
                self.state = self.state.set_lock(name, value, px_ms)
            case ("DEL",):
                self.state = self.state.del_lock(name)
            case _:
                raise NotImplementedError(f"{command} {key!r} {args}")
        return 1
