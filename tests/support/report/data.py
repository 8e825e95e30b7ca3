"""The run as one JSON object; ``spec/schemas/report.json`` describes it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import asdict
from typing import Any

from model.operation import Json
from redisq import __version__
from tests.support.cases import CLAUSES
from tests.support.outcome import FAILED, KNOWN, NOT_ASKED, PASSED, STATUSES, Outcome
from tests.support.session import Session
from tests.support.summary import verdict

FORMAT = 1


def data(run: Session, failed: int) -> Json:
    """Everything that the reports show."""
    text, good = verdict(run, failed)
    counts = Counter(outcome.status for outcome in run.outcomes)
    return {
        "format": FORMAT,
        "suite": __version__,
        "verdict": text,
        "conforms": good,
        "ended": run.ended,
        "level": run.choice.level,
        "port": _port(run),
        "servers": [
            {"name": h.name, "version": h.version, "clock": h.clock.mode, "reason": h.clock.reason} for h in _hosts(run)
        ],
        "counts": {status: counts[status] for status in STATUSES},
        "compared": _compared(run),
        "clauses": [_clause(run, name) for name in CLAUSES],
        "outcomes": [_outcome(outcome) for outcome in run.outcomes],
        "others": [_outcome(outcome) for outcome in run.others],
    }


def _port(run: Session) -> Json | None:
    if run.choice.port is None:
        return None
    if not run.ready:  # it said nothing of itself
        return {"command": run.choice.port, "name": "", "language": "", "version": "", "capabilities": []}
    hello = run.hello
    return {
        "command": run.choice.port,
        "name": hello.name,
        "language": hello.language,
        "version": hello.version,
        "capabilities": sorted(hello.capabilities),
    }


def _hosts(run: Session) -> list[Any]:
    return run.hosts if run.started else []


def _compared(run: Session) -> Json:
    compared: Counter[str] = Counter()
    for tally in run.tally.values():
        for (system, _), count in tally.operations.items():
            compared[system] += count
    return dict(compared)


def _clause(run: Session, name: str) -> Json:
    clause = CLAUSES[name]
    of_clause = [outcome for outcome in run.outcomes if name in outcome.clauses]
    found = {outcome.status for outcome in of_clause}
    status = next((status for status in (FAILED, KNOWN, PASSED) if status in found), NOT_ASKED)
    return {
        "id": name,
        "title": clause.title,
        "page": clause.page,
        "capability": clause.capability,
        "status": status,
        "cases": sorted({outcome.case for outcome in of_clause}),
    }


def _outcome(outcome: Outcome) -> Json:
    found = asdict(outcome)
    found["clauses"] = list(outcome.clauses)
    if outcome.failure is not None:
        for name in ("steps", "keys", "rules"):
            found["failure"][name] = list(getattr(outcome.failure, name))
        for name in ("before", "want", "have"):
            found["failure"][name] = _finite(found["failure"][name])
    return found


def _finite(keys: Json | None) -> Json | None:
    """A key space with each infinite score as a text: a wrong port can leave one, and JSON has none."""
    for entry in itertools.chain.from_iterable(keys["ready"]) if keys else ():
        if math.isinf(entry["score_ms"]):
            entry["score_ms"] = str(entry["score_ms"])
    return keys
