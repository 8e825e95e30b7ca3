"""audit: is any group of a queue stuck, and why; with repair, heals it.

The keys are paged with SCAN, HSCAN and ZSCAN. Every group met is looked at by one small script, at one instant, so
that a busy queue shows nothing that is not there; the same script heals what it has just seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from redisq import arguments
from redisq.errors import invalid
from redisq.keys import TIERS, Keys, decode
from redisq.ops.finding import Finding, Severity, worst
from redisq.ops.kinds import of_kind
from redisq.scripts import Call, Script
from redisq.transport import RedisTransport

PAGE = 100
"""How many keys or entries are asked for at a time, and groups looked at in one round trip."""
GLOB = b"*?[]\\^-"

Progress = Callable[[int, int], None]
"""Is told how many keys and entries were read, and how many there are about."""

_FOLDER = files("redisq") / "ops"
_GROUP = Script.read(_FOLDER, "audit")
_INDEX = Script.read(_FOLDER, "audit_index")


@dataclass
class Report:
    """What an audit found. `keys`: how many keys and entries were read; `others`: keys of queues named alike."""

    prefix: str
    repair: bool
    findings: list[Finding] = field(default_factory=list)
    keys: int = 0
    others: int = 0
    groups: int = 0
    """How often a group was looked at: one that has messages twice or three times, by its list, entry and field."""

    @property
    def severity(self) -> Severity:
        """Of the worst finding that was not healed."""
        return worst(self.findings)


def audit(
    client: Any,
    prefix: str = "redisq",
    *,
    repair: bool = False,
    tolerance: float = 60.0,
    progress: Progress | None = None,
) -> Report:
    """Looks at every key of a queue, and says what is wrong; with `repair`, heals what can be healed.

    - `client`: of redis or compatible, blocking; with a client of a cluster the node of the prefix is asked.
    - `tolerance`: seconds by which a score may lie beyond the end of its lock: the difference of clocks to put up with,
      if clients supply `clock`.

    Needs the rights to SCAN, HSCAN, ZSCAN, TYPE, PTTL, TIME and the reads of the scripts; to repair, also RENAME,
    PERSIST and the writes. Raises `InvalidArgument`; errors of the client pass through, but for those about
    one group, which are findings.
    """
    return _Audit(client, prefix, repair, tolerance, progress).run()


class _Audit:
    def __init__(self, client: Any, prefix: str, repair: bool, tolerance: float, progress: Progress | None) -> None:
        self._queue = RedisTransport(client, prefix)
        self._keys = Keys(arguments.prefix(prefix, client))
        self._tolerance = arguments.duration("tolerance", tolerance, zero=True)
        if type(repair) is not bool:
            raise invalid("repair", repair, "True or False")
        # All keys of a queue are on one node, which alone can page through them.
        self._node = client
        if hasattr(client, "get_node_from_key"):
            self._node = client.get_redis_connection(client.get_node_from_key(decode(self._keys.prio)))
        self._progress = progress or (lambda _done, _all: None)
        self._report = Report(prefix, repair)
        self._found: set[tuple[str, str]] = set()
        self._all = 0

    def run(self) -> Report:
        """The whole of it."""
        self._ask_index()
        if any(finding.code == "index-type" and not finding.healed for finding in self._report.findings):
            return self._report  # no group can be looked at
        self._all = self._count()
        for keys in self._pages("SCAN"):
            self._ask(group for key in keys if (group := self._group_of(key)))
        for tier in TIERS:
            for entries in self._pages("ZSCAN", self._keys.ready(tier)):
                self._ask(entries)
        for fields in self._pages("HSCAN", self._keys.prio):
            self._ask(fields)
        return self._report

    def _count(self) -> int:
        """About how much there is to read; 0 where that is refused."""
        asked = [("DBSIZE",), ("HLEN", self._keys.prio), *(("ZCARD", self._keys.ready(tier)) for tier in TIERS)]
        total = 0
        for command in asked:
            try:
                total += int(self._node.execute_command(*command))
            except Exception:  # whatever the client raises for a command that is refused: only progress needs it
                return 0
        return total

    def _pages(self, command: str, *key: bytes) -> Iterator[Sequence[bytes]]:
        """What a cursor goes through: keys, or names of fields or entries."""
        cursor: Any = b"0"
        match_prefix = [] if key else ["MATCH", _escaped(self._keys.prefix) + b":*"]
        while True:
            reply = self._node.execute_command(command, *key, cursor, *match_prefix, "COUNT", PAGE, NEVER_DECODE=True)
            cursor, items = reply
            names = [item[0] if isinstance(item, tuple) else item for item in items]
            self._report.keys += len(names)
            self._progress(self._report.keys, self._all)
            yield names
            if int(cursor) == 0:
                return

    def _group_of(self, key: bytes) -> bytes:
        """The group whose list or lock this is; empty if it is none, which is told where it is a finding."""
        family, _, name = key[len(self._keys.prefix) + 1 :].partition(b":")
        if family in (b"q", b"lock") and name:
            return name
        if family == b"aside":
            self._find("set-aside", decode(key), "")
        elif key != self._keys.prio and key not in map(self._keys.ready, TIERS):
            parts = key[len(self._keys.prefix) + 1 :].split(b":")[1:]
            if {b"q", b"lock", b"ready"} & set(parts[:-1]) or parts[-1:] == [b"prio"]:
                self._report.others += 1  # of a queue whose prefix begins with this one
            else:
                self._find("foreign-key", decode(key), "")
        return b""

    def _ask_index(self) -> None:
        repair = b"1" if self._report.repair else b"0"
        call = Call(_INDEX, (self._keys.prio, self._keys.prefix, repair), _pairs)
        for code, key in self._outcome(call):
            self._find(code, decode(key), "")

    def _outcome(self, call: Call[Any]) -> Any:
        outcome = self._queue._run_many([call], [call.by_sha])[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _ask(self, groups: Any) -> None:
        """Looks at each of these groups."""
        head, tail = (self._keys.prio, self._keys.prefix), (self._tolerance, b"1" if self._report.repair else b"0")
        calls = [Call(_GROUP, (*head, group, *tail), _pairs) for group in dict.fromkeys(groups)]
        if not calls:
            return
        self._report.groups += len(calls)
        outcomes = self._queue._run_many(calls, [call.by_sha for call in calls])
        for call, outcome in zip(calls, outcomes, strict=True):
            group = decode(call.group)
            if isinstance(outcome, Exception):
                self._find("not-examined", group, f"{type(outcome).__name__}: {outcome}")
                continue
            for code, detail in outcome:
                self._find(code, group, decode(detail))

    def _find(self, code: str, subject: str, detail: str) -> None:
        if (code, subject) not in self._found:  # a group is met by its list, its entry and its field
            self._found.add((code, subject))
            self._report.findings.append(of_kind(code, subject, detail, self._report.repair))


def _pairs(reply: Any) -> list[tuple[str, bytes]]:
    return [(code.decode("ascii"), detail) for code, detail in zip(reply[::2], reply[1::2], strict=True)]


def _escaped(prefix: bytes) -> bytes:
    return b"".join(b"\\%c" % byte if byte in GLOB else b"%c" % byte for byte in prefix)
