"""Any ARGV at all, by raw EVALSHA: a specified reply or REDISQ_BADARG, within a stated number of commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import redis

from model.operation import ARGV
from redisq import RedisTransport
from tests.faults.hostile import GROUPS, MOST, PREFIXES, Counted, attack, claim_commands, near_misses
from tests.faults.judge import Control, Edits, Judge, edited
from tests.faults.rig import Check, Fault, Rig, codes, needs_exact_clock
from tests.support.cases import SPEC
from tests.support.designs import package_scripts
from tests.support.fake import FakeHost
from tests.support.keyspace import READ
from tests.support.running import BaseServer
from tests.support.witness import LuaFiles, Scripts, reply_of, reply_of_error

EXAMPLES, EXAMPLES_ON_FAKEREDIS = 150, 60
LARGE = 64 * 1024 * 1024


@needs_exact_clock
def any_argv(rig: Rig) -> None:
    """ARG-7, ARG-8: calls of 0 to 8 arguments, near misses and any bytes among them, do what the model does."""
    attack(Counted(rig), EXAMPLES)


@needs_exact_clock
def any_near_miss(rig: Rig) -> None:
    """ARG-7, ARG-8: each argument of each script, replaced by each near miss, is taken or refused as specified."""
    near_misses(Counted(rig))


# A group whose name is made to reach what is not its own: victims wait, are leased and are parked, in queues whose
# prefixes resemble each other.

VICTIMS = [b"g", b"0", b"prio"]
BESIDE = [prefix for prefix in PREFIXES if prefix != b"redisq:"] + [b"redisq2", b"redisq:qq"]
_HOSTILE = [
    *(group for group in GROUPS if group not in VICTIMS),
    *(kind + victim for kind in (b"q:", b"lock:", b":q:", b"../", b"redisq:q:", b"\x00") for victim in VICTIMS),
    *(victim + tail for victim in VICTIMS for tail in (b"\x00", b":", b" ", b"*", b"\n")),
    *(b"ready:%d" % tier for tier in range(5)),
]
HOSTILE = dict.fromkeys(_HOSTILE)


@needs_exact_clock
def hostile_groups(rig: Rig) -> None:
    """KEYS-2, KEYS-3, KEYS-5: no operation on a group with a hostile name changes a key, member or field beside it."""
    for under in BESIDE:
        queue = rig.other(under)
        for number, victim in enumerate(VICTIMS):
            queue.publish(victim, b"of " + under, priority=number % 2)
        queue.nack(queue.claim(b"P")[0], b"P", delay_ms=50_000)
        queue.claim(b"A")
    for group in HOSTILE:
        before = _others(rig, group)
        steps: list[tuple[str, dict[str, Any], object]] = [
            ("publish", {"payload": b"1", "priority": 2}, 1),
            ("publish", {"payload": b"2", "priority": 3}, 2),
            ("claim", {}, (group, b"1")),
            ("extend", {}, 1),
            ("nack", {}, 1),
            ("claim", {}, (group, b"1")),
            ("ack", {}, 1),
            ("claim", {"visibility_ms": 1}, (group, b"2")),
            ("nack", {"delay_ms": 1_000}, 1),
        ]
        for op, arguments, due in steps:
            named = {"group": group} if op != "claim" else {"min_priority": 2}
            token = {"token": b"H"} if op != "publish" else {}
            reply = rig.do(op, **named, **token, **arguments)
            rig.expect(_value(reply) == due, f"{op} of {group!r} answers {reply}")
            changed = _difference(before, _others(rig, group))
            rig.expect(not changed, f"{op} of {group!r} changes {changed}")


def _value(reply: Any) -> object:
    value = getattr(reply, "value", None)
    return (value.group, value.payload) if hasattr(value, "group") else value


def _others(rig: Rig, group: bytes) -> dict[bytes, object]:
    """Every key of the database with its value and what is left of its time, but for what is the group's own."""
    found: dict[bytes, object] = {}
    for key, kind, left_ms, value in rig.admin.execute_command("EVAL", READ, 0):
        if kind in (b"zset", b"hash"):
            members = dict(zip(value[::2], value[1::2], strict=True))
            if key.startswith(rig.prefix + (b":ready:" if kind == b"zset" else b":prio")):
                members.pop(group, None)
            value = members
        if value and key not in (rig.prefix + b":q:" + group, rig.prefix + b":lock:" + group):
            found[key] = kind, left_ms, value
    return found


def _difference(before: dict[bytes, object], after: dict[bytes, object]) -> list[bytes]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


@needs_exact_clock
def any_keys(rig: Rig) -> None:
    """ARG-6: whatever KEYS are, a call does the same; a hundred thousand arguments are refused."""
    declared = [rig.prefix + b":prio"]
    expected = _session(rig, declared)
    for keys in ([], [b""], [b"another"], [*declared, b"more", b"\x00"], [rig.prefix + b":q:g"]):
        rig.reset()
        rig.expect(_session(rig, keys) == expected, f"with the keys {keys} the replies or the keys are others")
    before = rig.state()
    for op in ARGV:
        reply = _raw(rig, op, declared, [rig.prefix, *[b"1"] * 100_000])
        rig.expect(codes(reply) == "REDISQ_BADARG", f"{op} of 100,001 arguments answers {reply}")
        rig.expect(rig.state() == before, f"{op} of 100,001 arguments writes")


def _session(rig: Rig, keys: list[bytes]) -> object:
    token = [b"g", b"A", b""]
    calls = [
        ("publish", [b"g", b"1", b"3", b""]),
        ("publish", [b"g", b"2", b"3"]),
        ("claim", [b"", b"9", b"A", b"8", b"0"]),
    ]
    calls += [("extend", [*token, b"99"]), ("ack", token), ("claim", [b"", b"9", b"A", b"8", b"0"])]
    calls += [("nack", [*token, b"500"])]
    return [_raw(rig, op, keys, [rig.prefix, *argv]) for op, argv in calls], rig.state()


def _raw(rig: Rig, op: str, keys: list[bytes], argv: list[bytes]) -> Any:
    try:
        return reply_of(rig.admin.execute_command("EVAL", rig.caller.lua.source[op], len(keys), *keys, *argv))
    except redis.ResponseError as error:
        return reply_of_error(error, op)


CHECKS: list[Check] = [any_argv, any_near_miss, hostile_groups, any_keys]
PUSHED, LOCKED = "prefix .. ':q:' .. group, prefix .. ':ready:'", "local lock, prio = prefix .. ':lock:' .. group"
FOUND = "differs from the model|commands, not at most 0"
FIRST = "local function bad"
EDITS: dict[str, tuple[Check, str, Edits]] = {
    "prefix unchecked": (any_near_miss, FOUND, {"ack": ("elseif prefix == '' then", "elseif false then")}),
    "group unchecked": (any_near_miss, FOUND, {"nack": ("elseif group == '' then", "elseif false then")}),
    "parked taken": (any_near_miss, FOUND, {"claim": (" or token == 'parked'", "")}),
    "zeros before px": (any_near_miss, FOUND, {"extend": ("find(px, '^[1-9]%d*$')", "find(px, '^%d+$')")}),
    "zeros before delay": (any_near_miss, FOUND, {"nack": ("find(delay, '^[1-9]%d*$')", "find(delay, '^%d+$')")}),
    "line break after K": (any_near_miss, FOUND, {"claim": ("'^[1-9]%d?$'", "'^[1-9]%d?%s*$'")}),
    "any sign": (any_near_miss, FOUND, {"publish": ("'^%-?[1-9]%d*$'", "'^[+-]?[1-9]%d*$'")}),
    "count unchecked": (any_argv, FOUND, {"publish": (" and #ARGV ~= 5", " and #ARGV < 5")}),
    "written at once": (any_argv, FOUND, {"publish": (FIRST, f"redis.call('HSET', 'x', 'y', 'z')\n{FIRST}")}),
    "read at once": (any_argv, "runs 1 commands, not at most 0", {"ack": (FIRST, f"redis.call('TIME')\n{FIRST}")}),
    "list without family": (
        hostile_groups,
        "the operation answers",
        {"publish": (PUSHED, PUSHED.replace("':q:'", "':'"))},
    ),
    "lock without family": (hostile_groups, "answers", {"nack": (LOCKED, LOCKED.replace("':lock:'", "':'"))}),
    "cut at a NUL": (
        hostile_groups,
        "changes|answers",
        {"publish": (FIRST, f"group = group and string.match(group, '^%Z*')\n{FIRST}")},
    ),
    "another key used": (any_keys, "with the keys", {"ack": ("group, prefix .. ':prio'", "group, KEYS[1] or 'x'")}),
    "any number of them": (any_keys, "100,001 arguments", {"nack": ("#ARGV ~= 5", "#ARGV < 5")}),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_scripts(judge: Judge, check: Check) -> None:
    """KEYS-2, KEYS-3, KEYS-5, ARG-6, ARG-7, ARG-8: whatever is sent is refused, or does what it should and no more."""
    judge.passes(check)


@pytest.mark.parametrize("name", EDITS)
def test_scripts_undone(judge: Judge, name: str) -> None:
    """Each of these checks finds the scripts that let something through."""
    check, fault, edits = EDITS[name]
    judge.convicts(Control(check, fault, edits=edits))


def _fake(source: dict[str, str], folder: Path) -> Scripts:
    """Scripts on fakeredis, as they are laid into a folder."""
    for name, text in source.items():
        (folder / name).write_text(text)
    return Scripts(FakeHost(), LuaFiles(folder))


def test_any_argv_on_fakeredis(tmp_path: Path) -> None:
    """ARG-7: the same calls on fakeredis do what the model does."""
    scripts = _fake(package_scripts(), tmp_path)
    near_misses(scripts)
    attack(scripts, EXAMPLES_ON_FAKEREDIS)


def test_any_argv_on_fakeredis_undone(tmp_path: Path) -> None:
    """There, too, a check that is dropped is found."""
    source = package_scripts()
    source["publish.lua"] = edited(source["publish.lua"], "elseif prefix == '' then", "elseif false then")
    with pytest.raises(Fault, match="differs from the model"):
        near_misses(_fake(source, tmp_path))


def test_the_spec_states_the_number_of_commands() -> None:
    """ARG-8: the table of the spec says what these tests count."""
    clause = (SPEC / "arguments.md").read_text(encoding="utf-8").partition("### ARG-8")[2]
    stated = dict(re.findall(r"^\| (\w+) \| ([\w +]+?) \|", clause, re.MULTILINE))
    number, _, factor = stated.pop("claim").removesuffix(" K").partition(" + ")
    assert {op: int(most) for op, most in stated.items() if most.isdigit()} == MOST
    assert [int(number) + int(factor) * k for k in (1, 8, 99)] == [claim_commands(k) for k in (1, 8, 99)]


def test_a_large_group(server: BaseServer) -> None:
    """KEYS-1: a group whose name is as long as a payload may be large, 64 MB, is served like any other."""
    group = ("x" * LARGE)[:-1]
    queue = RedisTransport(server.client())
    assert [queue.publish(group + end, end) for end in "ab"] == [1, 1]
    lease = queue.claim()
    assert lease is not None
    assert (lease.group == group + "a", lease.text, queue.nack(lease, delay=60)) == (True, "a", True)
    lease = queue.claim()
    assert lease is not None
    assert (lease.group == group + "b", lease.text, queue.ack(lease)) == (True, "b", True)
