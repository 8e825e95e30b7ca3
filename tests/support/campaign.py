"""A campaign: the machine, round after round, until enough operations were compared; and its failure in words."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from tests.differential.machine import QueueMachine, Setting
from tests.support.session import Session, trace_lines
from tests.support.shifted import replay
from tests.support.shrink import shrink
from tests.support.trial import Divergence, Tally
from tests.support.witness import Witness

TRACES_PER_ROUND = 50
STEPS_PER_TRACE = 50


def campaign(
    witnesses: Sequence[Witness],
    operations: int,
    tally: Tally,
    *,
    seed: int = 0,
    machine: type[QueueMachine] = QueueMachine,
    shorten: bool = True,
) -> Divergence | None:
    """Runs the machine until so many operations were compared on each witness; a shrunk divergence, or None.

    Each round has a seed of its own, counted up from ``seed``: the same seed gives the same traces, everywhere.
    ``shorten=False`` leaves the trace as it was found.
    """
    # Generation only: ``shrink`` does the rest faster, on the witness that failed alone.
    exact = all(witness.exact for witness in witnesses)
    settings = hypothesis.settings(
        max_examples=TRACES_PER_ROUND if exact else 2,
        stateful_step_count=STEPS_PER_TRACE,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    setting = Setting(witnesses, tally, boundaries=exact)
    for number in itertools.count(seed):
        factory = hypothesis.seed(number)(lambda: machine(setting))
        try:
            run_state_machine_as_test(factory, settings=settings)  # type: ignore[arg-type]
        except (Divergence, Flaky):
            if setting.found is not None:
                return _shrunk(setting.found, witnesses) if shorten else setting.found
            if setting.boundaries:
                raise
            # Without a clock that can be set, the same choices need not lead to the same replies.
        if all(tally.compared(witness.name) >= operations for witness in witnesses):
            return None
    raise AssertionError("the rounds never end by themselves")


def _shrunk(found: Divergence, witnesses: Sequence[Witness]) -> Divergence:
    failing = [witness for witness in witnesses if witness.name == found.witness] or witnesses
    if not all(witness.exact for witness in failing):
        return found  # real time decides how far a replay comes
    return shrink(found, lambda trace: replay(trace, failing))


def random_seed() -> int:
    """A seed for a run that is to see what none before it saw."""
    return random.SystemRandom().randrange(10**9)


def failure(run: Session, divergence: Divergence, save: Path | None = None) -> str:
    """The whole report of a divergence; saves its trace if asked to."""
    if save is not None:
        save.write_text("\n".join(trace_lines(divergence.operations)) + "\n", encoding="utf-8")
    saved = f"\ntrace saved: {save}" if save else ""
    return f"{divergence.report}\n\nreplay just this trace:\n\n{run.replay_command(divergence)}\n{saved}"
