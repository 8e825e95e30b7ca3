"""Old and new clients on one queue: the original's scripts and ours, the same machine, one prefix.

Our own operations must stay exactly the model's, whatever an old client left behind. An old client may differ only by
the faults that ``spec/errata.md`` gives the original, each attributed, and only where they show; the messages it
stores and pops are the model's all the same. After each of its operations the model goes on from what is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from model.notation import difference, write
from model.operation import Operation, Reply
from model.run import World
from model.state import State
from tests.differential.machine import QueueMachine, Setting
from tests.support.campaign import campaign
from tests.support.designs import designs
from tests.support.explain import explain
from tests.support.fake import FakeHost
from tests.support.original import Original
from tests.support.outcome import Failure
from tests.support.reached import reached
from tests.support.servers import ServerSource, discover
from tests.support.session import PACKAGE_LUA
from tests.support.trial import Divergence, Tally, Trial
from tests.support.witness import Host, LuaFiles, Scripts, agree

OPERATIONS = 2_000
# What an old client does differently by itself; each must be seen, and nothing else may be.
OF_OLD_CLIENTS = {"E2", "E3", "E12", "E13", "E14", "E16"}
RARELY = {"E15"}  # its publish pushes first: shows only where a list is of another type


class FleetTrial(Trial):
    """A trial in which some operations are done by an old client on the same keys."""

    attributed: Counter[str]
    old: Original

    def do_old(self, operation: Operation) -> Reply:
        """One operation of an old client, whose clock is right."""
        if operation.op in ("claim", "ack", "nack"):
            operation = replace(operation, args={**operation.args, "now_ms": operation.time_ms})
        before = self.state(operation.prefix)
        world, expected = self.world.step(operation)
        self.steps.append((operation, expected))
        got = self.old.do(operation)
        stored = self.old.read(self.prefixes)
        want, have = world.state(operation.prefix), stored[operation.prefix]
        rows = difference(want, have)
        if rows or not agree(expected, got):
            situations = reached(before, operation, expected, want)
            found = explain(operation, before, expected, got, want, have, False, situations)[0].split(":")[0]
            if operation.op == "claim" and found not in OF_OLD_CLIENTS:
                found = _hidden_by(before) or found
            lost = [row for row in rows if row.startswith("q:")]
            if found not in OF_OLD_CLIENTS | RARELY or lost:
                report = f"an old client, no fault of the original ({found}): {write(operation, expected)}, got {got}"
                failure = Failure("reply", rules=(found,), report="\n".join([report, *rows]))
                raise Divergence(failure, [op for op, _ in self.steps], "old client")
            self.attributed[found] += 1
        self.world = World(operation.time_ms, stored)
        self.foreign.add(operation.prefix)
        return got


class FleetMachine(QueueMachine):
    """The machine, with a second kind of worker."""

    old: Original
    attributed: Counter[str]

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.by_old = False

    def step(self, operation: Operation) -> Reply:
        if not isinstance(self.trial, FleetTrial):
            (ours,) = self.setting.witnesses
            self.trial = FleetTrial([ours], operation.time_ms, self.trial.prefixes[:1], self.setting.tally)
            self.trial.attributed, self.trial.old = self.attributed, self.old
        if operation.argv is None and operation.prefix != self.trial.prefixes[0]:
            operation = replace(operation, args={**operation.args, "prefix": self.trial.prefixes[0]})
        if operation.op == "set-prio":  # would make an old publish name a tier of its own (E6)
            operation = Operation("drop-prio", operation.time_ms, {"group": operation["group"]})
        if not self.by_old or not _an_old_client_can(operation):
            return super().step(operation)
        try:
            return self.trial.do_old(operation)
        except Divergence as divergence:
            self.setting.found = self.setting.found or divergence
            raise

    @rule(old=st.booleans())
    def another_worker(self, old: bool) -> None:
        """From here on an old client works, or a new one."""
        self.by_old = old


def _hidden_by(before: State) -> str | None:
    """What may fill an old client's only window, so that it sees nothing behind it."""
    due = [group for tier in before.ready for group, score in tier.items() if score <= before.now_ms]
    if any(before.lock(group) for group in due):
        return "E3"
    return "E12" if any(not before.messages(group) for group in due) else None


def _an_old_client_can(operation: Operation) -> bool:
    """Whether it is an operation it has, called as it calls it."""
    has_it = operation.op in ("publish", "claim", "ack", "nack") and operation.argv is None
    return has_it and operation["min_priority"] in range(5) and operation["score_ms"] == 0


def hosts() -> Iterator[object]:
    """fakeredis, and the first real server found."""
    yield pytest.param(None, id="fakeredis")
    for source in discover()[:1]:
        yield pytest.param(source, id=source.name)


@pytest.mark.parametrize("source", list(hosts()))
def test_old_and_new_clients_share_a_queue(source: ServerSource | None) -> None:
    """Only the original's own faults appear, each attributed; our operations and all messages are the model's."""
    host: Host = FakeHost() if source is None else source.start()
    try:
        (original,) = (design for design in designs() if design.name == "original")
        attributed: Counter[str] = Counter()
        old = Original(host, LuaFiles(original.path, missing_ok=True), original)
        fleet = type("Fleet", (FleetMachine,), {"old": old, "attributed": attributed})
        tally = Tally()
        divergence = campaign([Scripts(host, LuaFiles(PACKAGE_LUA))], OPERATIONS, tally, machine=fleet)
        assert divergence is None, divergence and divergence.report
        assert set(attributed) <= OF_OLD_CLIENTS | RARELY
        assert {"E2", "E16"} <= set(attributed), f"the old client did little: {attributed}"
    finally:
        host.stop()  # type: ignore[attr-defined]
