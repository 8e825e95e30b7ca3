"""The judgement of one case on one system: asked or not, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.campaign import failure
from tests.support.cases import CLAUSES, Case, Check
from tests.support.outcome import FAILED, KNOWN, NOT_ASKED, PASSED, Failure, Outcome
from tests.support.port.asked import as_asked, why_not
from tests.support.port.witness import Asking
from tests.support.session import Session
from tests.support.shifted import replay
from tests.support.trial import Divergence, Tally
from tests.support.witness import Witness


def try_case(run: Session, case: Case, witness: Witness) -> Outcome:
    """Runs a trace of the spec on a system, and records the outcome."""
    operations = case.operations
    if isinstance(witness, Asking):
        hello = witness.adapter.hello
        if why := why_not(case, hello, witness.level):
            return record(run, case, witness.name, why=why)
        operations = as_asked(case, hello, witness.level)
    return record(run, case, witness.name, replay(operations, [witness], run.tally.setdefault("cases", Tally())))


def settle(outcomes: list[Outcome]) -> None:
    """The end of a test: it fails if one did, is expected to if that is known, and is skipped if nothing was asked."""
    if failures := [outcome.failure.report for outcome in outcomes if outcome.status == FAILED and outcome.failure]:
        pytest.fail("\n\n".join(failures), pytrace=False)
    if known := sorted({outcome.why for outcome in outcomes if outcome.status == KNOWN}):
        pytest.xfail("; ".join(known))
    if all(outcome.status == NOT_ASKED for outcome in outcomes):
        pytest.skip("; ".join(sorted({outcome.why for outcome in outcomes})) or "no server with a virtual clock")


def differs(run: Session, what: str, found: Divergence, save: Path | None = None) -> NoReturn:
    """The end of a test of what is no case of the spec: it fails, and the reports tell it beside the cases."""
    report, command = failure(run, found, save), run.replay_command(found)
    told = replace(found.failure, report=report, stderr=run.stderr_of(found.witness), command=command)
    run.others.append(Outcome(what, (), "", found.witness, FAILED, failure=told))
    pytest.fail(report, pytrace=False)


def record(
    run: Session, case: Case | Check, system: str, found: Divergence | Failure | None = None, *, why: str = ""
) -> Outcome:
    """Records what came of a case, in the light of the known failures."""
    status = NOT_ASKED if why else PASSED if found is None else FAILED
    outcome = Outcome(case.id, case.clauses, case.sentence, system, status, why)
    if found is not None:
        outcome = replace(outcome, failure=_failure(run, case, system, found))
    outcome = run.known.judge(outcome)
    run.outcomes.append(outcome)
    return outcome


def _failure(run: Session, case: Case | Check, system: str, found: Divergence | Failure) -> Failure:
    of_case = found.failure if isinstance(found, Divergence) else found
    stderr = run.stderr_of(system)
    clauses = [f"{name} {CLAUSES[name].title} (spec/{CLAUSES[name].page})" for name in case.clauses]
    text = "\n".join([f"{case.id}: {case.sentence}", *(f"breaks {clause}" for clause in clauses), ""])
    if run.choice.port:
        command = run.case_command(case.id)
        report = f"{of_case.report}\n\nthis case alone:\n\n{command}\n"
    else:
        command = run.replay_command(found) if isinstance(found, Divergence) else ""
        report = failure(run, found) if isinstance(found, Divergence) else of_case.report
    if stderr:
        report += f"\nthe last lines of the adapter's standard error:\n{stderr}\n"
    if run.choice.port and case.capability and case.capability not in run.hello.capabilities:
        report += f"\nthe port does not declare the capability {case.capability}\n"
    return replace(of_case, report=f"{text}\n{report}", stderr=stderr, command=command)
