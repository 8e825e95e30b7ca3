"""The suite on ports: it rejects each wrong one, by the cases named for it, and takes the right ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from model.operation import CAPABILITIES
from tests.conformance.test_port_checks import try_check
from tests.ports.zoo import WRONG, protocol
from tests.support.campaign import campaign
from tests.support.cases import CASES, CHECKS, CLAUSES
from tests.support.judge import try_case
from tests.support.outcome import FAILED, KINDS, NOT_ASKED, PASSED, Outcome
from tests.support.port.witness import Port
from tests.support.running import BaseServer
from tests.support.session import Choice, Session
from tests.support.summary import lines
from tests.support.trial import Tally

PYTHON = sys.executable
HERE = Path(__file__).parent
BY_ID: dict[str, Any] = {case.id: case for cases in (CASES, CHECKS) for case in cases}
OPERATIONS = 500  # of the machine, on each right port


@pytest.fixture
def session(host: BaseServer) -> Iterator[Any]:
    """Makes the run of a port on that server; what it started is ended."""
    made: list[Session] = []

    def make(command: str, level: str = "full", timeout_s: float | None = None) -> Session:
        made.append(Session(Choice(port=command, level=level, port_timeout_s=timeout_s), _hosts=[host]))
        return made[-1]

    yield make
    for run in made:
        run._hosts = []
        run.close()


def asked(run: Session, *names: str) -> list[Outcome]:
    """The outcomes of these cases of the spec."""
    (port,) = run.witnesses
    assert isinstance(port, Port)
    return [(try_check if BY_ID[name] in CHECKS else try_case)(run, BY_ID[name], port) for name in names]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_port_is_rejected(session: Any, name: str) -> None:
    """Each case named for it fails, in the way it should, and the report names the clause."""
    wrong = WRONG[name]
    run = session(f"{PYTHON} -m tests.ports.zoo {name}", timeout_s=2.0 if wrong.kind == "hang" else None)
    assert wrong.rejected_by
    for outcome in asked(run, *wrong.rejected_by):
        assert outcome.status == FAILED, f"{name} passes {outcome.case}: {outcome.sentence}"
        assert outcome.failure is not None
        assert outcome.failure.kind in ([wrong.kind] if wrong.kind else ["reply", "keys", "check"])
        clause = outcome.clauses[0]
        assert f"breaks {clause} {CLAUSES[clause].title}" in outcome.failure.report


@pytest.mark.parametrize(
    ("command", "level"),
    [
        (f"{PYTHON} -m tests.ports.zoo Right", "full"),
        (f"{PYTHON} -m tests.ports.zoo Original", "core"),
        (f"{PYTHON} {HERE / 'python.py'}", "full"),
        (f"{PYTHON} {HERE / 'python.py'} --async", "full"),
    ],
    ids=["right", "original", "python", "asyncio"],
)
def test_right_port_is_taken(session: Any, command: str, level: str) -> None:
    """Every case and every check pass, and all are asked at level full."""
    run = session(command, level)
    outcomes = asked(run, *BY_ID)
    assert [outcome for outcome in outcomes if outcome.status == FAILED] == []
    not_asked = [outcome.case for outcome in outcomes if outcome.status == NOT_ASKED]
    assert not not_asked if level == "full" else all(BY_ID[name].level == "full" for name in not_asked)
    assert sum(outcome.status == PASSED for outcome in outcomes) > 100


@pytest.mark.parametrize(("name", "level"), [("Right", "full"), ("Original", "core")])
def test_right_port_agrees_with_the_machine(
    session: Any, monkeypatch: pytest.MonkeyPatch, name: str, level: str
) -> None:
    """Random operations say nothing against it either. The reference adapter is driven so by the library's own run."""
    monkeypatch.setattr("tests.support.campaign.TRACES_PER_ROUND", 10)
    run = session(f"{PYTHON} -m tests.ports.zoo {name}", level)
    divergence = campaign(run.witnesses, OPERATIONS, Tally())
    assert divergence is None, divergence.report


def test_the_original_is_told_what_it_lacks(session: Any) -> None:
    """At level full it fails a case of each capability; the report names it and the clause, and shows the trace."""
    run = session(f"{PYTHON} -m tests.ports.zoo Original")
    told = set()
    for outcome in asked(run, *(name for name, case in BY_ID.items() if case.capability)):
        if outcome.failure:
            told.add(BY_ID[outcome.case].capability)
            assert outcome.failure.steps
            assert f"breaks {outcome.clauses[0]} " in outcome.failure.report
            assert f"does not declare the capability {BY_ID[outcome.case].capability}" in outcome.failure.report
    assert told == set(CAPABILITIES)
    summary = "\n".join(lines(run, stats=False))
    assert all(f"LACKS       {capability}, which it does not declare: " in summary for capability in CAPABILITIES)


def test_at_core_the_original_is_told_as_a_finding(session: Any) -> None:
    """Level core does not ask for an atomic nack; that a lease is lost between its round trips is said all the same."""
    run = session(f"{PYTHON} -m tests.ports.zoo Original", "core")
    (outcome,) = asked(run, "E1-2")
    assert outcome.status == NOT_ASKED
    (finding,) = [line for line in lines(run, stats=False) if line.startswith("FINDING     E1-2 ")]
    assert "nack was held up before its command 2; another worker was given the group by then" in finding


def test_every_kind_of_accident_is_in_the_zoo() -> None:
    """Each way not to answer has a port that does it, and the zoo is large enough to say something."""
    assert {port.kind for port in WRONG.values()} >= set(KINDS) - {"reply", "keys", "check", "invariant", "start"}
    assert len([port for port in WRONG.values() if port.__module__ != protocol.__name__]) >= 24
