"""A history as a page: a lane per group, time from left to right, and what the checkers say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template

from model.notation import quoted, write
from model.operation import Ok
from tests.concurrency.blackbox import unknown
from tests.concurrency.history import FOREVER_NS, History, Record
from tests.concurrency.verdict import REJECTED, Verdict

TEMPLATE = Template(Path(__file__).with_name("timeline.html").read_text(encoding="utf-8"))
MS = 1_000_000
PX_PER_MS = 2
ROW, BAR, LEFT, TOP = 22, 14, 150, 26
MOST_ROWS = 12


def page(history: History, verdicts: Sequence[Verdict]) -> str:
    """The whole page; it needs nothing else."""
    begin = min(record.invoked_ns for record in history.records)
    groups: dict[bytes, list[Record]] = defaultdict(list)
    for record in sorted(history.records, key=lambda record: record.invoked_ns):
        group = record.delivery.group if record.delivery is not None else record.operation.args.get("group")
        if isinstance(group, bytes):
            groups[group].append(record)
    wrong = {verdict.group for verdict in verdicts if verdict.kind == REJECTED}
    parts, top = [], TOP
    for group in sorted(groups, key=lambda group: (group not in wrong, group)):
        drawn, rows = _lane(groups[group], begin, top)
        name = escape(quoted(group))
        parts.append(f"<g class='{'wrong' if group in wrong else 'lane'}'>")
        parts.append(f"<rect class='ground' x='0' y='{top}' width='100%' height='{rows * ROW + 6}'/>")
        parts.append(f"<text class='name' x='6' y='{top + 16}'>{name}</text>{drawn}</g>")
        top += rows * ROW + 12
    end = max(record.invoked_ns for record in history.records)
    width = LEFT + (end - begin) // MS * PX_PER_MS + 400
    scale = "".join(
        f"<text class='tick' x='{LEFT + ms * PX_PER_MS}' y='16'>{ms} ms</text>"
        for ms in range(0, (end - begin) // MS + 1, 100)
    )
    said = "".join(f"<pre class='{verdict.kind}'>{escape(str(verdict))}</pre>" for verdict in verdicts)
    return TEMPLATE.substitute(said=said, width=width, height=top + 10, scale=scale, lanes="".join(parts))


def _lane(records: Sequence[Record], begin: int, top: int) -> tuple[str, int]:
    """The calls of one group as bars, each in the first row that is free, and the number of rows."""
    ends: list[int] = []
    drawn = []
    for record, kind, until in _bars(records):
        x = LEFT + (record.invoked_ns - begin) // MS * PX_PER_MS
        width = max(4, (until - record.invoked_ns) // MS * PX_PER_MS)
        row = next((number for number, end in enumerate(ends) if end < x), None)
        if row is None:
            row = min(len(ends), MOST_ROWS - 1)
            ends += [0] if row == len(ends) else []
        ends[row] = x + width + 1
        told = write(record.operation, record.reply) if record.reply is not None else unknown(record)
        label = f"{record.lane}: {told.split(maxsplit=1)[1]}"
        y = top + 4 + row * ROW
        text = f"<text x='{x + 3}' y='{y + 11}'>{escape(kind[:1])}</text>"
        bar = f"<rect class='{kind}' x='{x}' y='{y}' width='{width}' height='{BAR}'/>"
        drawn.append(f"<g tabindex='0'><title>{escape(label)}</title>{bar}{text}</g>")
    return "".join(drawn), max(1, len(ends))


def _bars(records: Sequence[Record]) -> Iterator[tuple[Record, str, int]]:
    """Each call, what it is, and until when it lasts: a claim as long as its lease, or to its accepted settlement."""
    settled = {
        (record.operation.args.get("token")): record.completed_ns
        for record in records
        if record.operation.op in ("ack", "nack") and record.reply == Ok(1)
    }
    for record in records:
        if record.delivery is not None:
            visibility_ms = record.operation["visibility_ms"]
            assert isinstance(visibility_ms, int)
            until = settled.get(record.token, record.completed_ns + visibility_ms * MS)
            yield record, "lease", min(until, record.completed_ns + visibility_ms * MS)
        else:
            known = record.completed_ns < FOREVER_NS
            kind = record.operation.op if record.reply != Ok(0) else "refused"
            yield record, kind if known else "unknown", record.completed_ns if known else record.invoked_ns
