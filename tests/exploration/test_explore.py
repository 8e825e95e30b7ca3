"""The explorer finds out known-bad designs by their shortest traces, and its scopes are as large as they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model.explore import Exploration, Violation
from model.scope import SCOPES, Scope
from tests.exploration.designs import explored

SMALL = SCOPES["small"]
CONTROLS = {
    # id: design, the one script of it that is used or all, scope, the promise it breaks, steps of the shortest trace
    "E1": ("original", "nack", replace(SMALL, delay_ms=0, workers=3), "EXCLUSIVE", 8),
    "E2": ("park-same-token", "", SMALL, "FENCE", 4),
    "E3": ("original", "claim", replace(SMALL, skew_ms=3, tiers=1), "CLAIMABLE", 5),
    "a DEL without compare": ("ack-without-fence", "", SMALL, "FENCE", 4),
    "a single ZSET": ("single-zset", "", replace(SMALL, groups=3, messages=3), "CLAIMABLE", 4),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_a_known_bad_design_is_found_out(control: str, tmp_path: Path) -> None:
    """A design breaks the promise named for it, by a trace of so many steps and no shorter one."""
    name, script, scope, rule, steps = CONTROLS[control]
    with pytest.raises(Violation) as found:
        Exploration(scope, explored(name, tmp_path, script), rule=rule).run()
    assert found.value.broken[0].startswith(rule)
    assert len(found.value.trace) == steps, str(found.value)


@pytest.mark.parametrize(
    ("scope", "states", "transitions"),
    [
        (SMALL, 2_342, 20_108),
        (SCOPES["default"], 47_602, 503_264),
        (replace(SMALL, foreign=1), 27_915, 259_623),
        (SCOPES["clocks"], 20_564, 426_312),
    ],
)
def test_the_size_of_a_scope(scope: Scope, states: int, transitions: int) -> None:
    """Everything holds in a scope, and it is as large as it was: a search that lost a part would be smaller."""
    exploration = Exploration(scope)
    exploration.run()
    assert (exploration.states, exploration.transitions) == (states, transitions)
