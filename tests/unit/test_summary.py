"""The summary of a run: what it counts, and the verdicts it gives."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from tests.support.fake import FakeHost
from tests.support.outcome import FAILED, NOT_ASKED, PASSED, Outcome
from tests.support.session import Choice, Session
from tests.support.summary import lines, table, verdict
from tests.support.trial import Tally


def _run(**changes: object) -> Session:
    """A run on fakeredis that compared five operations."""
    run = Session(Choice(suts=["fakeredis", "sync"]))
    run._hosts = [FakeHost()]
    operations = Counter({("fakeredis", "claim"): 3, ("sync/fakeredis", "ack"): 1, ("fakeredis", "wait"): 1})
    run.tally = {"scripts": Tally(operations, Counter({"step": 100}))}
    run.outcomes = [
        Outcome("E2-1", ("E2",), "", "fakeredis", PASSED),
        Outcome("E2-1", ("E2",), "", "sync/fakeredis", FAILED),
        Outcome("E3-2", ("E3",), "", "fakeredis", NOT_ASKED, "no clock"),
    ]
    for name, value in changes.items():
        setattr(run, name, value)
    return run


def test_counts_by_witness_operation_and_correction() -> None:
    """A line for each, with what was compared."""
    text = "\n".join(lines(_run(missing=["redis-7.0"], not_started=["image: no daemon"]), stats=True))
    for words in (
        "fakeredis                        4 operations",
        "sync/fakeredis                   1 operations",
        "operation   claim                            3",
        "operation   foreign writes and waits         1",
        "correction  E2   1 of 2 cases pass",
        "correction  E3   no case here",
        "clauses     E          1 passed, 1 failed, 1 not asked",
        "BROKEN      E2         A parked lease can still be settled (park-revokes): E2-1",
        "redis-7.0    MISSING",
        "NOT STARTED  image: no daemon",
        "BELOW ITS FLOOR",
    ):
        assert words in text, f"{words}\nnot in\n{text}"


def test_table_has_a_row_for_each_server() -> None:
    """With the operations compared on it by the scripts and by each transport."""
    run = _run()
    assert list(table(run))[-1] == f"| fakeredis | {run.hosts[0].version} | virtual | 4 | 1 | - |"


def test_only_a_run_that_compared_and_did_not_fail_conforms() -> None:
    """A missing server, a failure and an empty run each have their verdict, and none is a good one."""
    assert verdict(_run(), 0)[1]
    for run, failed, words in (
        (_run(), 1, "DOES NOT CONFORM"),
        (_run(missing=["redis-7.0"]), 0, "INCOMPLETE: required and not found: redis-7.0"),
        (_run(not_started=["image: no daemon"]), 0, "INCOMPLETE: 1 of the servers asked for"),
        (_run(tally={}, outcomes=[]), 0, "NOTHING RAN"),
    ):
        text, good = verdict(run, failed)
        assert not good
        assert words in text


def test_the_verdict_names_what_was_tested() -> None:
    """A host that was there and on which nothing was compared is not among the servers it conforms on."""
    alone, _ = verdict(_run(), 0)
    assert alone.startswith("CONFORMS on fakeredis alone: no real server was tested")
    server = SimpleNamespace(name="redis-7.0", version="7.0.15")
    both = _run(_hosts=[FakeHost(), server])
    both.tally["more"] = Tally(Counter({("async/redis-7.0", "ack"): 1}))
    assert verdict(both, 0)[0].startswith("CONFORMS on fakeredis, redis-7.0: ")
    real = _run(_hosts=[FakeHost(), server], tally={"more": both.tally["more"]}, outcomes=[])
    assert verdict(real, 0)[0].startswith("CONFORMS on redis-7.0: ")
    model = _run(tally={"model": Tally(Counter({("model", "ack"): 1}))}, outcomes=[])
    assert verdict(model, 0)[0].startswith("CONFORMS on the model: ")
