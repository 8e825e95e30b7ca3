"""The machine of ``tests/differential`` against every chosen system under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.support.campaign import campaign, random_seed
from tests.support.judge import differs
from tests.support.options import OPERATIONS
from tests.support.reached import below_floors
from tests.support.session import Session
from tests.support.trial import Tally
from tests.support.witness import Witness

# The library adds no script to the queue, only a translation: a share of the operations is enough to hold it.
ENOUGH_STEPS = 10_000
SHARE = {"scripts": 1, "model": 1, "sync": 5, "async": 5, "port": 4}


@pytest.mark.parametrize("group", list(SHARE))
def test_agrees_with_the_model(run: Session, pytestconfig: pytest.Config, group: str) -> None:
    """Every reply and the whole key space are the model's after each of many random operations."""
    witnesses = [witness for witness in run.groups.get(group, ()) if witness.exact]
    if not witnesses:
        pytest.skip(f"{group}: not chosen, or no server with a virtual clock")
    check(run, pytestconfig, group, witnesses)


@pytest.mark.parametrize("group", list(SHARE))
def test_agrees_where_the_clock_cannot_be_set(run: Session, pytestconfig: pytest.Config, group: str) -> None:
    """The same on each server whose clock cannot be set, one at a time, within what its clock can tell apart."""
    witnesses = [witness for witness in run.groups.get(group, ()) if not witness.exact]
    if not witnesses:
        pytest.skip(f"{group}: not chosen, or every clock can be set")
    for witness in witnesses:
        check(run, pytestconfig, f"{group} shifted", [witness])


def check(run: Session, pytestconfig: pytest.Config, group: str, witnesses: Sequence[Witness]) -> None:
    """Runs the machine on a group; a divergence is the test's failure, in words."""
    profile: str = pytestconfig.getoption("--profile")
    operations = (pytestconfig.getoption("--operations") or OPERATIONS[profile]) // SHARE[group.split()[0]]
    tally = run.tally.setdefault(group, Tally())
    seed = random_seed() if profile == "nightly" else 0
    divergence = campaign(witnesses, operations, tally, seed=seed)
    if divergence is not None:
        differs(run, "random operations", divergence, pytestconfig.getoption("--save-trace"))


def test_reached_what_matters(run: Session) -> None:
    """The machine went often enough where queues break: expiry, ties, parks, stale settlements, repairs."""
    reached: Counter[str] = Counter()
    for group in SHARE:
        reached += run.tally[group].reached if group in run.tally else Counter()
    if reached["step"] < ENOUGH_STEPS:
        pytest.skip(f"{reached['step']} steps are too few to judge by shares")
    assert below_floors(reached) == []
