"""The users of `spec/rights.md`: what it lists is enough for every operation, and each part of it is needed."""

from __future__ import annotations

import re

import pytest

from tests.faults.checks.rights import COMMAND, SITUATIONS, is_refused
from tests.faults.judge import Control, Judge
from tests.faults.rig import Rig, codes, needs_exact_clock
from tests.support.cases import SPEC
from tests.support.designs import package_scripts

PAGE = (SPEC / "rights.md").read_text(encoding="utf-8")
ROLES = {"producer": ("publish",), "worker": ("claim", "ack", "nack", "extend")}
RULES = {
    name: rules.replace("PREFIX", "redisq").split()
    for name, rules in re.findall(r"^ACL SETUSER (\w+) on >secret (.+)$", PAGE, re.MULTILINE)
}
ONLY_COLD = ("+eval",)  # of an empty cache: tests/faults/test_reports_rights.py


@needs_exact_clock
def rights_are_enough(rig: Rig) -> None:
    """RIGHT-1: with just these rights every script does, in every situation, what it does with all of them."""
    for role, ops in ROLES.items():
        user = rig.user(role, *RULES[role])
        for situation in SITUATIONS:
            if situation.op in ops:
                seen = []
                for caller in (rig, user):
                    rig.reset()
                    situation.prepare(rig)
                    reply = caller.do(situation.op, **situation.arguments)
                    seen.append((reply, rig.state()))
                where = f"{role}: {situation.op}, {situation.name}"
                rig.expect(not codes(seen[0][0]), f"{where}: refused to everybody")
                rig.expect(seen[0] == seen[1], f"{where}: {seen[1][0]} instead of {seen[0][0]}")


def rights_are_needed(rig: Rig) -> None:
    """RIGHT-2: with any one of them less some operation is refused, nothing is lost, and the queue heals."""
    for role, ops in ROLES.items():
        for number, missing in enumerate(RULES[role]):
            if missing in (*ONLY_COLD, "resetchannels"):
                continue
            poor = rig.user(f"{role}{number}", *(rule for rule in RULES[role] if rule != missing))
            here = [situation for situation in SITUATIONS if situation.op in ops]
            refused = [is_refused(rig, poor, situation, missing.removeprefix("+").upper()) for situation in here]
            rig.expect(any(refused), f"{role}: {missing} is not needed")


def test_enough(judge: Judge) -> None:
    """B48, RIGHT-1: the listed users can do all that they have to."""
    judge.passes(rights_are_enough)


def test_needed(judge: Judge) -> None:
    """B48, RIGHT-2: each right that is listed is needed, and its lack loses nothing."""
    judge.passes(rights_are_needed)


def test_enough_undone(judge: Judge) -> None:
    """A script that takes one more command, or a key of another name, is found."""
    locked = "local lock, prio = prefix .. ':lock:' .. group"
    once = {"extend": (locked, f"redis.call('EXISTS', KEYS[1])\n{locked}")}
    judge.convicts(Control(rights_are_enough, "worker: extend", edits=once))
    strange = {"extend": (locked, f"redis.call('GET', prefix .. ':other')\n{locked}")}
    judge.convicts(Control(rights_are_enough, "worker: extend", edits=strange))


def test_needed_undone(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right too many is found, and so is a script whose refusal loses a message."""
    judge.convicts(Control(rights_are_needed, "has messages and no index entry", "push-before-index"))
    monkeypatch.setitem(RULES, "producer", [*RULES["producer"], "+incr"])
    judge.convicts(Control(rights_are_needed, r"\+incr is not needed"))


def test_the_page_lists_what_the_scripts_run() -> None:
    """RIGHT-1: the table of commands, and the users, are those of the scripts."""
    used = {
        name.removesuffix(".lua"): {command.decode().lower() for command in COMMAND.findall(source.encode())}
        for name, source in package_scripts().items()
    }
    told: dict[str, set[str]] = {op: set() for op in used}
    for command, ops in re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", PAGE, re.MULTILINE):
        for op in ops.split(", "):
            told[op].add(command)
    assert told == used
    for role, ops in ROLES.items():
        needed = {f"+{command}" for op in ops for command in used[op]}
        assert {rule for rule in RULES[role] if rule[0] == "+"} == {"+evalsha", "+eval", *needed}
