"""A trial: one trace, performed on the model and on witnesses beside it, compared after every step.

The first divergence ends it: an exception whose text is the whole report a reader needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from model import invariants
from model.notation import write_reply
from model.operation import FOREIGN, Error, Operation, Reply, Unsupported
from model.run import World
from model.state import State
from tests.support.explain import explain
from tests.support.outcome import Failure, cut, kind_of, lines_of
from tests.support.reached import reached
from tests.support.witness import Witness


class Divergence(AssertionError):
    """A witness did not do what the model does.

    ``operations`` is the trace up to there, ``failure`` what was expected and what came, ``report`` it in words.
    """

    def __init__(self, failure: Failure, operations: Sequence[Operation], witness: str) -> None:
        super().__init__(failure.report)
        self.failure = failure
        self.report = failure.report
        self.operations = list(operations)
        self.witness = witness
        self.rules = list(failure.rules)


@dataclass
class Tally:
    """What the trials of a run did, summed up."""

    operations: Counter[tuple[str, str]] = field(default_factory=Counter)  # (witness, op) → compared
    reached: Counter[str] = field(default_factory=Counter)  # situation → steps
    steps: int = 0
    traces: int = 0

    def compared(self, witness: str) -> int:
        """The operations compared on one witness."""
        return sum(count for (name, _), count in self.operations.items() if name == witness)


class Trial:
    """Performs operations one by one on the model and the witnesses; raises ``Divergence`` at the first difference."""

    def __init__(
        self, witnesses: Sequence[Witness], start_ms: int, prefixes: Sequence[bytes], tally: Tally | None = None
    ) -> None:
        self.witnesses = witnesses
        self.prefixes = prefixes
        self.tally = tally or Tally()
        self.tally.traces += 1
        self.world = World(start_ms)
        self.steps: list[tuple[Operation, Reply]] = []
        self.ledgers = {prefix: invariants.Ledger() for prefix in prefixes}
        self.foreign: set[bytes] = set()
        for witness in witnesses:
            witness.reset(start_ms)

    @property
    def now_ms(self) -> int:
        """The server's clock."""
        return self.world.now_ms

    def state(self, prefix: bytes) -> State:
        """The model's state of a prefix."""
        return self.world.state(prefix)

    def do(self, operation: Operation) -> Reply:
        """One step everywhere. Returns the model's reply."""
        prefix = operation.prefix if operation.prefix in self.prefixes else self.prefixes[0]
        clock_stepped_back = operation.time_ms < self.now_ms
        before = self.world.step(Operation("wait", operation.time_ms))[0].state(prefix)
        self.world, reply = self.world.step(operation)
        after = self.state(prefix)
        self.steps.append((operation, reply))
        self.tally.steps += 1
        situations = reached(before, operation, reply, after)
        self.tally.reached.update(situations)
        self.tally.reached["step"] += 1
        for witness in self.witnesses:
            self._compare(witness, operation, before, reply, situations)
        if operation.op in FOREIGN or clock_stepped_back:
            self.foreign.add(prefix)
        self._check_invariants(operation, reply, prefix, after)
        return reply

    def _compare(
        self, witness: Witness, operation: Operation, before: State, reply: Reply, situations: frozenset[str]
    ) -> None:
        got, states = witness.observe(operation, self.prefixes)
        if isinstance(got, Unsupported) and isinstance(reply, Error):
            return  # it cannot be asked this way, and nothing would have changed
        rows = {prefix: witness.difference(self.state(prefix), states[prefix]) for prefix in self.prefixes}
        agrees = witness.agrees(operation, reply, got)
        if not agrees or any(rows.values()):
            prefix = operation.prefix if operation.prefix in self.prefixes else self.prefixes[0]
            others_differ = any(found for other, found in rows.items() if other != prefix)
            want, have = self.state(prefix), states[prefix]
            rules = explain(operation, before, reply, got, want, have, others_differ, situations)
            kind = kind_of(got, agrees=agrees)
            found = Failure(kind, before=before.to_json(), want=want.to_json(), have=have.to_json(), rules=tuple(rules))
            self._diverge(witness.name, reply, got, rows, found)
        self.tally.operations[witness.name, operation.op] += 1

    def _diverge(
        self,
        name: str,
        expected: Reply,
        got: Reply,
        rows: Mapping[bytes, Sequence[str]],
        found: Failure,
    ) -> None:
        lines = lines_of(self.steps)
        numbered = [f"  {number:>3}  {line}" for number, line in enumerate(lines[:-1], 1)]
        came = cut(write_reply(got))
        verdict = "" if found.kind in ("keys", "invariant") else f"   got {came}"
        numbered.append(f"> {len(lines):>3}  {lines[-1]}{verdict}")
        keys = [
            f"       {'' if len(self.prefixes) == 1 else prefix.decode('latin-1') + ' '}{row}"
            for prefix, found in rows.items()
            for row in found
        ]
        report = [f"{name} differs from the model at step {len(lines)}, {self.steps[-1][0].op}", ""]
        report += ["       time   operation", *numbered, ""]
        report += ["keys that differ after that step:", *keys, ""] if keys else ["no key differs", ""]
        report += [f"broken: {rule}" for rule in found.rules]
        failure = replace(
            found,
            steps=lines,
            expected=write_reply(expected),
            got=came,
            keys=tuple(row.strip() for row in keys),
            report="\n".join(report),
        )
        raise Divergence(failure, [operation for operation, _ in self.steps], name)

    def _check_invariants(self, operation: Operation, reply: Reply, prefix: bytes, after: State) -> None:
        """The model itself against what was written without looking at its steps; until something foreign wrote."""
        if prefix in self.foreign or operation.prefix != prefix:
            return
        ledger = self.ledgers[prefix]
        broken = [*ledger.record(operation, reply), *invariants.of_state(after), *ledger.against(after)]
        if broken:
            found = Failure("invariant", want=after.to_json(), have=after.to_json(), rules=tuple(broken))
            self._diverge("an invariant", reply, reply, {}, found)
