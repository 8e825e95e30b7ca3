"""The run as one self-contained page: the clauses as a matrix, and each failure as a timeline with its key spaces."""

from __future__ import annotations

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
MARKS = {PASSED: ("✓", "passed"), FAILED: ("✗", "failed"), KNOWN: ("!", "known"), NOT_ASKED: ("·", "asked")}


def page(report: Json) -> str:
    """The whole page."""
    port = report["port"]
    name = f"{port['name'] or port['command']}" if port else "redisq"
    return TEMPLATE.substitute(
        title=escape(f"redisq conformance: {name}"),
        verdict=escape(report["verdict"]),
        verdict_class="yes" if report["conforms"] else "no",
        about=_about(report),
        failures="".join(_failures(report)),
        legend=escape("   ".join(f"{MARKS[status][0]} {status}" for status in STATUSES)),
        matrix=_matrix(report),
    )


def _about(report: Json) -> str:
    rows = []
    if port := report["port"]:
        capabilities = ", ".join(port["capabilities"]) or "none"
        rows = [
            ("Port", f"{port['name']} {port['version']} ({port['language']}), level {report['level']}"),
            ("Command", port["command"]),
            ("Capabilities", capabilities),
        ]
    for server in report["servers"]:
        reason = f": {server['reason']}" if server["reason"] else ""
        rows.append(("Server", f"{server['name']} {server['version']}, {server['clock']} clock{reason}"))
    rows.append(("Cases", ", ".join(f"{report['counts'][status]} {status}" for status in STATUSES)))
    rows += [("Compared", f"{system}: {count:,} operations") for system, count in report["compared"].items()]
    cells = "".join(f"<tr><th scope='row'>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<div class='scroll'><table><tbody>{cells}</tbody></table></div>"


def _matrix(report: Json) -> str:
    systems = list(dict.fromkeys(outcome["system"] for outcome in report["outcomes"]))
    by_clause: dict[tuple[str, str], list[str]] = {}
    for outcome in report["outcomes"]:
        for clause in outcome["clauses"]:
            by_clause.setdefault((clause, outcome["system"]), []).append(outcome["status"])
    heads = "".join(f"<th scope='col' class='mark'>{escape(system)}</th>" for system in systems)
    rows = []
    for name, clauses in groupby(report["clauses"], key=lambda clause: clause["page"]):
        rows.append(f"<tr class='page'><th scope='colgroup' colspan='{1 + len(systems)}'>{escape(name)}</th></tr>")
        for clause in clauses:
            needs = f" <span class='soft'>({escape(clause['capability'])})</span>" if clause["capability"] else ""
            title = f"<b>{escape(clause['id'])}</b> {escape(clause['title'])}{needs}"
            marks = "".join(_mark(by_clause.get((clause["id"], system), [])) for system in systems)
            rows.append(f"<tr><th scope='row'>{title}</th>{marks}</tr>")
    head = f"<thead><tr><th scope='col'>Clause</th>{heads}</tr></thead>"
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"


def _mark(statuses: Sequence[str]) -> str:
    """The worst of a clause's cases on one system, and how many of them passed."""
    status = next((status for status in (FAILED, KNOWN, PASSED) if status in statuses), NOT_ASKED)
    sign, name = MARKS[status]
    count = f" {statuses.count(PASSED)}/{len(statuses)}" if status in (FAILED, KNOWN) else ""
    return f"<td class='mark {name}'><span title='{status}'>{sign}{count}</span></td>"


def _failures(report: Json) -> Iterator[str]:
    found = [outcome for outcome in report["outcomes"] if outcome["failure"]]
    if found:
        yield f"<h2 id='failures'>Failures ({len(found)})</h2>"
    titles = {clause["id"]: clause["title"] for clause in report["clauses"]}
    for outcome in found:
        failure = outcome["failure"]
        known = f"<p class='known'>Known: {escape(outcome['why'])}</p>" if outcome["status"] == KNOWN else ""
        clauses = "".join(f"<p><b>{escape(c)}</b> {escape(titles.get(c, ''))}</p>" for c in outcome["clauses"])
        parts = [
            f"<h3 class='{MARKS[outcome['status']][1]}'>{escape(outcome['case'])} on {escape(outcome['system'])}: "
            f"{escape(failure['kind'])}</h3>",
            f"<p>{escape(outcome['sentence'])}</p>",
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
            parts.append(f"<div><p class='soft'>This case alone:</p><pre>{escape(failure['command'])}</pre></div>")
        yield f"<article>{''.join(parts)}</article>"


def _steps(failure: Json) -> str:
    if not failure["steps"]:
        return ""
    last = len(failure["steps"])
    lines = "".join(
        f"<li{' class=here' if number == last else ''}>{number:>3}  {escape(line)}</li>"
        for number, line in enumerate(failure["steps"], 1)
    )
    got = ""
    if failure["expected"] != failure["got"] and failure["expected"]:
        got = f"<p>expected <code>{escape(failure['expected'])}</code>, got <mark>{escape(failure['got'])}</mark></p>"
    keys = "".join(f"<p><code>{escape(row)}</code></p>" for row in failure["keys"])
    return f"<ol class='steps'>{lines}</ol>{got}<div>{keys}</div>"


def _spaces(failure: Json) -> str:
    named = (("Keys before", "before"), ("Keys as they should be", "want"), ("Keys as they are", "have"))
    sections = [
        f"<section><h4>{title}</h4><pre>{escape(chr(10).join(_keys(failure[name])) or 'none')}</pre></section>"
        for title, name in named
        if failure[name] is not None
    ]
    return f"<div class='spaces'>{''.join(sections)}</div>" if sections else ""


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
