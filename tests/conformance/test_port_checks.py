"""The checks of the spec on a port: what needs a full server, users without rights, or commands held up."""

from __future__ import annotations

import pytest

from tests.support.cases import CHECKS, Check
from tests.support.judge import record, settle
from tests.support.outcome import FINDING, Failure, Outcome
from tests.support.port import checks
from tests.support.port.asked import why_not
from tests.support.port.checks.rig import NotAsked, Rig
from tests.support.port.process import PortError
from tests.support.port.witness import Asking, Port
from tests.support.session import Session
from tests.support.trial import Divergence


@pytest.mark.parametrize("case", CHECKS, ids=lambda case: case.id)
def test_check(run: Session, case: Check) -> None:
    """What stands in the page happens, and nothing is lost."""
    settle([try_check(run, case, witness) for witness in run.witnesses if isinstance(witness, Asking)])


def try_check(run: Session, case: Check, witness: Asking) -> Outcome:
    """Does a check of the spec to a port, and records the outcome."""
    name = witness.name
    why = why_not(case, witness.adapter.hello, witness.level)
    if not why and not witness.exact and case.id not in checks.IN_REAL_TIME:
        why = "no server with a virtual clock"
    if not isinstance(witness, Port):
        return record(run, case, name, why=why or "needs a server of the runner's")
    finding = why is not None and witness.level == "core" and witness.exact
    if why and not finding:
        return record(run, case, name, why=why)
    try:
        with Rig(witness) as rig:
            checks.CHECKS[case.id](rig)
    except Divergence as divergence:
        if finding:  # level core asks for less: the user is told all the same
            return record(run, case, name, why=f"{why}; {FINDING}{divergence.failure.got}")
        return record(run, case, name, divergence)
    except NotAsked as error:
        return record(run, case, name, why=str(error))
    except PortError as error:
        if finding:
            return record(run, case, name, why=f"{why}; {FINDING}{error}")
        return record(run, case, name, Failure(error.kind, report=str(error)))
    return record(run, case, name, why=why or "")
