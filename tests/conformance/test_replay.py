"""A saved trace, replayed: what ``--replay FILE`` runs."""

from __future__ import annotations

import pytest

from model.notation import read_trace
from tests.support.judge import differs
from tests.support.session import Session
from tests.support.shifted import replay
from tests.support.trial import Tally


def test_replay(run: Session, pytestconfig: pytest.Config) -> None:
    """The trace of the file agrees with the model on every chosen system."""
    lines = pytestconfig.getoption("--replay").read_text(encoding="utf-8").splitlines()
    operations = [operation for operation, _ in read_trace(lines)]
    if not operations:
        pytest.fail(f"{pytestconfig.getoption('--replay')}: no operation in it", pytrace=False)
    for witness in run.witnesses:
        divergence = replay(operations, [witness], run.tally.setdefault("replay", Tally()))
        if divergence is not None:
            differs(run, "replay", divergence)
