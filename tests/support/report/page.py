"""The run as one self-contained page: the clauses as a matrix, and each failure as a timeline with its key spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template

from model.notation import quoted
from model.operation import Json, untagged
from tests.support.outcome import FAILED, KNOWN, NOT_ASKED, PASSED, STATUSES

TEMPLATE = Template((Path(__file__).with_name("page.html")).read_text(encoding="utf-8"))
# A sign and a class for each status: colour alone says nothing to those who do not see it.
MARKS = {PASSED: ("✓", "passed"), FAILED: ("✗", "failed"), KNOWN: ("!", "known"), NOT_ASKED: ("○", "asked")}
# A line of the notation: the time, the operation, and the reply, which follows the first arrow that is in no string.
_STEP = re.compile(r'(\d+)\s+((?:"(?:\\.|[^"\\])*"|[^"])*?)(?:\s+-> (.*))?')


def page(report: Json) -> str:
    """The whole page."""
    port = report["port"]
    name = f"{port['name'] or port['command']}" if port else "redisq"
    failures = [outcome for outcome in [*report["others"], *report["outcomes"]] if outcome["failure"]]
    failures.sort(key=lambda outcome: bool(outcome["status"] == KNOWN))  # last
    return TEMPLATE.substitute(
        title=escape(f"redisq conformance: {name}"),
        verdict=escape(report["verdict"]),
        verdict_class="yes" if report["conforms"] else "no",
        about=_about(report),
        failures="".join(_failures(report, failures)),
        not_asked="".join(_not_asked(report)),
        legend=" ".join(f"<span class='{name}'>{sign} {status}</span>" for status, (sign, name) in MARKS.items()),
        matrix=_matrix(report, failures),
    )


def _about(report: Json) -> str:
    rows = []
    if port := report["port"]:
        what = f"{port['name']} {port['version']} ({port['language']})" if port["name"] else "said no hello"
        capabilities = ", ".join(port["capabilities"]) or "none"
        rows = [
            ("Port", f"{what}, level {report['level']}"),
            ("Command", port["command"]),
            ("Capabilities", capabilities),
        ]
    for server in report["servers"]:
        reason = f": {server['reason']}" if server["reason"] else ""
        rows.append(("Server", f"{server['name']} {server['version']}, {server['clock']} clock{reason}"))
    rows.append(("Cases", ", ".join(f"{report['counts'][status]} {status}" for status in STATUSES)))
    rows += [("Compared", f"{system}: {count:,} operations") for system, count in report["compared"].items()]
    rows.append(("Suite", f"redisq {report['suite']}"))
    return "".join(f"<tr><th scope='row'>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)


def _matrix(report: Json, failures: Sequence[Json]) -> str:
    systems = list(dict.fromkeys(outcome["system"] for outcome in report["outcomes"]))
    by_clause: dict[tuple[str, str], list[str]] = {}
    for outcome in report["outcomes"]:
        for clause in outcome["clauses"]:
            by_clause.setdefault((clause, outcome["system"]), []).append(outcome["status"])
    links: dict[tuple[str, str], int] = {}  # clause, system → its first failure
    for number, outcome in enumerate(failures):
        for clause in outcome["clauses"]:
            links.setdefault((clause, outcome["system"]), number)
    heads = "".join(f"<th scope='col' class='mark'>{escape(system)}</th>" for system in systems)
    parts = [f"<thead><tr><th scope='col'>Clause</th>{heads}</tr></thead>"]
    for name, clauses in groupby(report["clauses"], key=lambda clause: clause["page"]):
        rows = [f"<tr class='page'><th scope='rowgroup' colspan='{1 + len(systems)}'>{escape(name)}</th></tr>"]
        for clause in clauses:
            needs = f" <span class='soft'>({escape(clause['capability'])})</span>" if clause["capability"] else ""
            title = f"<b>{escape(clause['id'])}</b> {escape(clause['title'])}{needs}"
            places = [(clause["id"], system) for system in systems]
            marks = "".join(_mark(by_clause.get(place, []), links.get(place)) for place in places)
            rows.append(f"<tr><th scope='row'>{title}</th>{marks}</tr>")
        parts.append(f"<tbody>{''.join(rows)}</tbody>")
    return "".join(parts)


def _mark(statuses: Sequence[str], link: int | None) -> str:
    """The worst of a clause's cases on one system, and how many of them passed."""
    status = next((status for status in (FAILED, KNOWN, PASSED) if status in statuses), NOT_ASKED)
    sign, name = MARKS[status]
    count = f" {statuses.count(PASSED)}/{len(statuses)}" if status in (FAILED, KNOWN) else ""
    text = f"<span aria-hidden='true'>{sign}</span>{count}<span class='unseen'> {status}</span>"
    linked = text if link is None else f"<a href='#failure-{link}'>{text}</a>"
    return f"<td class='mark {name}'>{linked}</td>"


def _not_asked(report: Json) -> Iterator[str]:
    reasons: dict[str, dict[str, None]] = {}  # why → cases, once each
    for outcome in report["outcomes"]:
        if outcome["status"] == NOT_ASKED:
            reasons.setdefault(outcome["why"], {})[outcome["case"]] = None
    if reasons:
        items = "".join(f"<li>{escape(why)}: {escape(', '.join(cases))}</li>" for why, cases in reasons.items())
        yield f"<h2 id='not-asked'>Not asked</h2><ul>{items}</ul>"


def _failures(report: Json, failures: Sequence[Json]) -> Iterator[str]:
    if failures:
        yield f"<h2 id='failures'>Failures ({len(failures)})</h2>"
    titles = {clause["id"]: clause["title"] for clause in report["clauses"]}
    for number, outcome in enumerate(failures):
        failure = outcome["failure"]
        known = f"<p class='known'>Known: {escape(outcome['why'])}</p>" if outcome["status"] == KNOWN else ""
        clauses = "".join(f"<p><b>{escape(c)}</b> {escape(titles.get(c, ''))}</p>" for c in outcome["clauses"])
        sign, name = MARKS[outcome["status"]]
        parts = [
            f"<h3 class='{name}'>{sign} {escape(outcome['case'])} on {escape(outcome['system'])}: "
            f"{escape(failure['kind'])}</h3>",
            f"<p>{escape(outcome['sentence'])}</p>" if outcome["sentence"] else "",
            f"<div>{clauses}</div>{known}",
            _steps(failure),
            *(f"<p><mark>{escape(rule)}</mark></p>" for rule in failure["rules"]),
            _spaces(failure),
        ]
        if not failure["steps"]:
            parts.append(f"<pre>{escape(failure['report'])}</pre>")
        if failure["stderr"]:
            parts.append(f"<details><summary>Standard error</summary><pre>{escape(failure['stderr'])}</pre></details>")
        if failure["command"]:
            parts.append(f"<div><p class='soft'>This alone:</p><pre>{escape(failure['command'])}</pre></div>")
        yield f"<article id='failure-{number}'>{''.join(parts)}</article>"


def _steps(failure: Json) -> str:
    if not failure["steps"]:
        return ""
    *before, last = map(_step, failure["steps"])
    came = f"expected <code>{escape(failure['expected'])}</code>, got <mark>{escape(failure['got'])}</mark>"
    if failure["expected"] == failure["got"]:
        came = "the reply is right, the keys are not" if failure["keys"] else "the reply and the keys are as expected"
    lines = "".join(f"<li>{line}</li>" for line in before)
    here = f"<li class='here' aria-current='step'>{last}<p class='came'><mark>✗</mark> here: {came}</p></li>"
    keys = "".join(f"<p><code>{escape(row)}</code></p>" for row in failure["keys"])
    return f"<ol class='steps'>{lines}{here}</ol><div>{keys}</div>"


def _step(line: str) -> str:
    found = _STEP.fullmatch(line)
    time, operation, reply = found.groups() if found else ("", line, None)
    due = f"<span class='due'>→ {escape(reply)}</span>" if reply is not None else ""
    return f"<div class='step'><span class='at'>{time}</span> <span>{escape(operation)}</span> {due}</div>"


def _spaces(failure: Json) -> str:
    named = (("Keys before", "before"), ("Keys as they should be", "want"), ("Keys as they are", "have"))
    held = {name: list(_keys(failure[name])) for _, name in named if failure[name] is not None}
    others = {"want": held.get("have"), "have": held.get("want")}  # what differs between these two is marked
    sections = [
        f"<section><h4>{title}</h4><pre>{_marked(held[name], others.get(name)) or 'none'}</pre></section>"
        for title, name in named
        if name in held
    ]
    return f"<div class='spaces'>{''.join(sections)}</div>" if sections else ""


def _marked(lines: Sequence[str], others: Sequence[str] | None) -> str:
    """The lines, those that the others lack with a sign."""
    same = lines if others is None else others
    return "\n".join(escape(line) if line in same else f"<mark>≠ {escape(line)}</mark>" for line in lines)


def _keys(space: Json) -> Iterator[str]:
    """A key space as lines."""
    for queue in space["queues"]:
        messages = queue["messages"]
        held = "of another type" if messages is None else "[" + ", ".join(map(_text, messages)) + "]"
        yield f"q:{_text(queue['group'])} {held}"
    for lock in space["locks"]:
        value = "of another type" if lock["value"] is None else _text(lock["value"])
        until = "without TTL" if lock["deadline_ms"] is None else f"until {lock['deadline_ms']}"
        yield f"lock:{_text(lock['group'])} {value} {until}"
    for tier, entries in enumerate(space["ready"]):
        for entry in entries:
            yield f"ready:{tier} {_text(entry['group'])} {entry['score_ms']}"
    for field in space["prio"]:
        yield f"prio {_text(field['group'])} {_text(field['value'])}"


def _text(tagged: Json) -> str:
    return quoted(untagged(tagged, "bytes"))
