"""What a run says at its end: servers, operations compared, a line per operation and per correction, the verdict."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.metadata import version

from model.operation import ARGV, CAPABILITIES
from tests.support.cases import CLAUSES, CORRECTIONS
from tests.support.outcome import FAILED, FINDING, NOT_ASKED, PASSED, STATUSES
from tests.support.reached import CORRECTIONS as SITUATIONS
from tests.support.reached import below_floors
from tests.support.session import Session

OTHER = "foreign writes and waits"


def lines(run: Session, *, stats: bool) -> Iterator[str]:
    """The summary, without the verdict."""
    for host in run.hosts:
        clock = f"{host.clock.mode} clock" + (f": {host.clock.reason}" if host.clock.reason else "")
        yield f"server      {host.name:<12} {host.version:<10} {clock}"
    for why in run.not_started:
        yield f"server      NOT STARTED  {why}"
    for name in run.missing:
        yield f"server      {name:<12} MISSING, and required"
    if run.choice.port and run.groups:
        hello = run.hello
        yield f"port        {hello.name} {hello.version} ({hello.language}), level {run.choice.level}"
        yield f"declares    {', '.join(sorted(hello.capabilities)) or 'no capability'}"
    if run.choice.lua:
        yield f"scripts     {run.choice.lua}"
    operations: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for tally in run.tally.values():
        for (witness, op), count in tally.operations.items():
            compared[witness] += count
            operations[op if op in ARGV else OTHER] += count
        reached += tally.reached
    for witness, count in compared.items():
        yield f"compared    {witness:<24} {count:>9,} operations: the reply and every key"
    for op in (*ARGV, OTHER) if operations else ():
        yield f"operation   {op:<24} {operations[op]:>9,}"
    yield from _clauses(run)
    for correction, title in () if run.choice.port else CORRECTIONS.items():
        counts = f"{_cases(run, correction):<22} {_situations(reached, correction):>12}"
        yield f"correction  {correction:<4} {counts}  {title}"
    if stats:
        yield from _stats(run)


def table(run: Session) -> Iterator[str]:
    """The run as a table in Markdown: a row for each server, with the operations compared on it."""
    compared: Counter[str] = Counter()
    for tally in run.tally.values():
        for (witness, _), count in tally.operations.items():
            compared[witness] += count
    packages = ", ".join(f"{name} {version(name)}" for name in ("redis", "fakeredis", "hypothesis"))
    yield f"Python {platform.python_version()}, {packages}."
    yield ""
    yield "| server | version | clock | scripts | sync | async |"
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    for host in run.hosts:
        counts = (compared[name] for name in (host.name, f"sync/{host.name}", f"async/{host.name}"))
        cells = " | ".join(f"{count:,}" if count else "-" for count in counts)
        yield f"| {host.name} | {host.version} | {host.clock.mode} | {cells} |"


def _clauses(run: Session) -> Iterator[str]:
    """A line for the clauses of each page; and one for each clause that is not kept, with its cases."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in run.outcomes:
        for clause in outcome.clauses[:1]:
            counts[clause.split("-")[0] if "-" in clause else "E"][outcome.status] += 1
    for page, statuses in sorted(counts.items()):
        line = ", ".join(f"{statuses[status]} {status}" for status in STATUSES if statuses[status])
        yield f"clauses     {page:<10} {line}"
    broken: dict[str, list[str]] = defaultdict(list)
    for outcome in run.outcomes:
        if outcome.status == FAILED:
            for clause in outcome.clauses:
                broken[clause].append(outcome.case)
    for clause, cases in sorted(broken.items()):
        capability = CLAUSES[clause].capability if clause in CLAUSES else None
        needs = f" ({capability})" if capability else ""
        yield f"BROKEN      {clause:<10} {CLAUSES[clause].title}{needs}: {', '.join(sorted(set(cases)))}"
    for capability in CAPABILITIES if run.choice.port and broken else ():
        lacking = [clause for clause in broken if CLAUSES[clause].capability == capability]
        if lacking and capability not in run.hello.capabilities:
            yield f"LACKS       {capability}, which it does not declare: {', '.join(sorted(lacking))}"
    for outcome in run.outcomes:
        if outcome.status == NOT_ASKED and FINDING in outcome.why:
            yield f"FINDING     {outcome.case:<10} {outcome.sentence}: {outcome.why.split(FINDING)[1]}"
    for entry in sorted(run.known.unmatched) if not run.known.narrowed else ():
        yield f"KNOWN FAILURE {entry} matches no case that ran: take it out of the file"


def _cases(run: Session, correction: str) -> str:
    results = [o.status for o in run.outcomes if o.clauses[:1] == (correction,) and o.status != NOT_ASKED]
    if not results:
        return "no case here"
    return f"{results.count(PASSED)} of {len(results)} cases pass"


def _situations(reached: Counter[str], correction: str) -> str:
    count = sum(reached[situation] for situation, name in SITUATIONS.items() if name == correction)
    return f"{count:,} times" if correction in SITUATIONS.values() else ""


def _of_port(run: Session) -> str:
    where = ", ".join(host.name for host in run.hosts) or "its own keys alone: nothing that needs a server was asked"
    statuses = Counter(outcome.status for outcome in run.outcomes)
    cases = ", ".join(f"{statuses[status]} {status}" for status in STATUSES if statuses[status])
    level = run.choice.level
    return f"CONFORMS ({level}) on {where}: {cases}; {run.compared():,} operations compared, no difference"


def _stats(run: Session) -> Iterator[str]:
    for name, tally in run.tally.items():
        yield f"stats       {name}: {tally.traces:,} traces, {tally.steps:,} steps"
        for situation, count in sorted(tally.reached.items(), key=lambda item: -item[1]):
            yield f"stats         {count:>9,}  {situation}"
        for floor in below_floors(tally.reached):
            yield f"stats         BELOW ITS FLOOR  {floor}"


def verdict(run: Session, failed: int) -> tuple[str, bool]:
    """The last line, and whether it is a good one."""
    if run.ended:
        found = f"DOES NOT CONFORM: {failed} failed until then; " if failed else ""
        return f"{found}ENDED: {run.ended}", False
    if run.unwritten:
        return f"INCOMPLETE: not written: {'; '.join(run.unwritten)}", False
    if run.missing:
        return f"INCOMPLETE: required and not found: {', '.join(run.missing)}", False
    if run.not_started:
        return f"INCOMPLETE: {len(run.not_started)} of the servers asked for could not be started", False
    if failed:
        return f"DOES NOT CONFORM: {failed} failed; each says which rule is broken, and how to replay it", False
    if run.known.unmatched and not run.known.narrowed:
        return f"DOES NOT CONFORM: known failures that match nothing: {', '.join(sorted(run.known.unmatched))}", False
    if run.checked:
        return run.checked, True
    if not run.ran():
        return "NOTHING RAN", False
    if run.choice.port:
        return _of_port(run), True
    systems = [name for tally in run.tally.values() for name, _ in tally.operations]
    systems += [outcome.system for outcome in run.outcomes if outcome.status != NOT_ASKED]
    tested = {name.rpartition("/")[2] for name in systems}  # of sync/redis-7.0 the server
    names = [host.name for host in run.hosts if host.name in tested]
    where = f"on {', '.join(names)}" if names else "on the model"
    if names == ["fakeredis"] and "model" not in run.choice.suts:
        where = "on fakeredis alone: no real server was tested, and what only a server shows was not seen"
    return f"CONFORMS {where}: {run.compared():,} operations compared, no difference", True
