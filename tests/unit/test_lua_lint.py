"""The lint passes the scripts, however they are laid out, and catches a violation of each rule."""

from __future__ import annotations

from configparser import ConfigParser
from importlib.resources import files
from pathlib import Path

import pytest

from tests.support.designs import NAMES, REWRITES, package_scripts
from tests.support.lua_lint import lint, main
from tests.support.lua_rules import RULES

HEAD = """\
local prefix, group, n = ARGV[1], ARGV[2], ARGV[3]
local lock, q = prefix .. ':lock:' .. group, prefix .. ':q:' .. group
"""
"""What stands before each snippet: two lines."""

# Rule, script, and what breaks the rule in its last line.
VIOLATIONS = [
    ("portable", "ack", "goto out\n::out::"),
    ("portable", "ack", "return 7 // 2"),
    ("portable", "ack", "return 6 & 3"),
    ("portable", "ack", "return ~1"),
    ("portable", "ack", "local a <const> = 1"),
    ("portable", "ack", r"return '\x41'"),
    ("portable", "ack", r"return '\\\u{41}'"),
    ("portable", "ack", "while n do\nif n then break; n = nil end\nend"),
    ("globals", "ack", "count = 1"),
    ("globals", "ack", "return grop"),
    ("globals", "ack", "if true then local kept = '1' end\nreturn kept"),
    ("globals", "ack", "for _, key in pairs({}) do n = key end"),
    ("globals", "ack", "return unpack({ n })"),
    ("globals", "ack", "return cjson.encode(n)"),
    ("globals", "ack", "return cmsgpack.pack(n)"),
    ("globals", "ack", "return bit.band(1, 2)"),
    ("globals", "ack", "loadstring('return 1')()"),
    ("globals", "ack", "error('no')"),
    ("globals", "ack", "return os.time()"),
    ("globals", "ack", "return server.call('GET', lock)"),
    ("globals", "ack", "ARGV[3] = '1'"),
    ("globals", "ack", "redis.call = nil"),
    ("globals", "ack", "function look() end"),
    ("globals", "ack", "function string.look() end"),
    ("library", "ack", "return string.rep(n, 3)"),
    ("library", "ack", "return math.random()"),
    ("library", "ack", "local find = string.find"),
    ("library", "ack", "return string['find'](n, 'a')"),
    ("library", "ack", "local s = string"),
    ("library", "ack", "return n:sub(1, 2)"),
    ("library", "ack", "local text = tostring"),
    ("library", "ack", "local all = ARGV"),
    ("library", "ack", "local look = function() end"),
    ("library", "ack", "local function look(...) return ... end"),
    ("library", "ack", "local function look() end\nlocal again = look"),
    ("redis-api", "ack", "redis.log(1, n)"),
    ("redis-api", "ack", "redis.replicate_commands()"),
    ("redis-api", "ack", "return redis.status_reply('OK')"),
    ("redis-api", "ack", "return redis.sha1hex(n)"),
    ("redis-api", "ack", "local call = redis.call"),
    ("redis-api", "ack", "redis['call']('GET', lock)"),
    ("commands", "ack", "redis.call('KEYS', '*')"),
    ("commands", "ack", "redis.call('get', lock)"),
    ("commands", "ack", "redis.call(n, lock)"),
    ("commands", "ack", "redis.call()"),
    ("commands", "ack", "redis.pcall('SET', lock, n, 'PX', n)"),
    ("commands", "publish", "redis.call('DEL', lock)"),
    ("commands", "peek", "return 1"),
    ("keys-unread", "ack", "return KEYS[1]"),
    ("keys-unread", "ack", "return #KEYS"),
    ("key-space", "ack", "redis.call('GET', group)"),
    ("key-space", "ack", "redis.call('GET', ARGV[2] .. ':lock:' .. group)"),
    ("key-space", "ack", "redis.call('GET', prefix .. ':locks:' .. group)"),
    ("key-space", "ack", "redis.call('GET', q)"),
    ("key-space", "ack", "redis.call('ZREM', prefix .. ':ready:5', group)"),
    ("key-space", "ack", "redis.call('HDEL', prefix .. ':prio:' .. group, group)"),
    ("key-space", "ack", "local function look(key) return redis.call('LLEN', key) end\nlook(q)\nlook(lock)"),
    ("key-space", "ack", "local pair = { lock, q }\nredis.call('GET', pair[2])"),
    ("one-key", "ack", "redis.call('DEL', lock, q)"),
    ("one-key", "ack", "redis.call('DEL')"),
    ("one-key", "ack", "redis.call('LPOP', q, '2')"),
    ("one-key", "claim", "redis.call('GETEX', lock, 'PERSIST')"),
    ("one-key", "ack", "redis.call('ZREM', prefix .. ':ready:0', group, n)"),
    ("one-key", "ack", "redis.call('HSET', prefix .. ':prio', q, n)"),
    ("lock-px", "claim", "redis.call('SET', lock, n)"),
    ("lock-px", "claim", "redis.call('SET', lock, n, 'EX', n)"),
    ("lock-px", "claim", "redis.call('SET', lock, n, 'NX', 'PX', n)"),
    ("strings", "ack", "redis.call('ZADD', prefix .. ':ready:0', 0, group)"),
    ("strings", "ack", "redis.call('ZADD', prefix .. ':ready:0', n + 1, group)"),
    ("strings", "ack", "redis.call('ZADD', prefix .. ':ready:0', tonumber(n), group)"),
    ("strings", "ack", "redis.call('ZADD', prefix .. ':ready:0', #n, group)"),
    ("strings", "ack", "redis.call('ZADD', prefix .. ':ready:0', -1, group)"),
    ("strings", "ack", "local left = redis.call('LLEN', q)\nredis.call('HSET', prefix .. ':prio', group, left)"),
    ("strings", "claim", "local ttl = redis.call('PTTL', lock)\nredis.call('SET', lock, n, 'PX', ttl)"),
    ("strings", "claim", "for t = 0, 4 do\nredis.call('LINDEX', q, t)\nend"),
    (
        "strings",
        "ack",
        "local score = n\nif n then score = score + 1 end\nredis.call('ZADD', prefix .. ':ready:0', score, group)",
    ),
    ("strings", "ack", "redis.call('HSET', prefix .. ':prio', group, true)"),
    ("strings", "ack", "redis.call('HSET', prefix .. ':prio', group, { n })"),
    ("strings", "claim", "local function sum() return 1 + n end\nredis.call('LINDEX', q, sum())"),
    ("strings", "claim", "local pair = { n, 1 }\nredis.call('LINDEX', q, pair[2])"),
    ("strings", "claim", "for _, at in ipairs({ 1, 2 }) do\nredis.call('LINDEX', q, at)\nend"),
    ("digits", "ack", "return 'at ' .. (n + 1)"),
    ("digits", "claim", "return 'for ' .. redis.call('PTTL', lock)"),
    ("digits", "ack", "return tostring(n * 2)"),
    ("digits", "ack", "return tostring(tonumber(n))"),
    ("digits", "ack", "return string.format('%d', n + 1)"),
    ("digits", "ack", "return string.format(n, 1)"),
    ("truth", "ack", "if redis.call('LLEN', q) then return 1 end"),
    ("truth", "ack", "if redis.call('EXISTS', lock) then return 1 end"),
    ("truth", "ack", "if redis.call('DEL', lock) then return 1 end"),
    ("truth", "ack", "if not redis.call('LLEN', q) then return 1 end"),
    ("truth", "ack", "return redis.call('LLEN', q) and 1 or 0"),
    ("truth", "ack", "local left = redis.call('LLEN', q)\nif left or n then return 1 end"),
    ("truth", "ack", "local left = redis.call('LLEN', q)\nwhile left do left = left - 1 end"),
    ("truth", "ack", "repeat n = nil until redis.call('LLEN', q)"),
    ("truth", "ack", "if n then return 0 elseif redis.pcall('LLEN', q) then return 1 end"),
    ("truth", "ack", "local function left() return redis.call('LLEN', q) end\nif left() then return 1 end"),
    ("truth", "claim", "if redis.call('TYPE', lock) then return 1 end"),
    ("time", "ack", "redis.call('TIME')\nredis.call('TIME')"),
    ("time", "ack", "for t = 1, 2 do\nredis.call('TIME')\nend"),
    ("time", "ack", "local function now() return redis.call('TIME')[1] end\nreturn now() .. now()"),
    ("time", "ack", "if n == '' then redis.call('TIME') end\nif n ~= '' then redis.call('TIME') end"),
    ("time", "ack", "redis.call('DEL', lock)\nredis.call('TIME')"),
    ("time", "ack", "if n then redis.call('DEL', lock) end\nreturn redis.call('TIME')[1]"),
    ("time", "claim", "redis.call('GETEX', lock)\nredis.call('TIME')"),
    ("time", "ack", "while n do\nif n == '' then redis.call('TIME') end\nredis.call('DEL', lock)\nend"),
    ("first-write", "claim", "redis.call('SET', lock, n, 'PX', n)"),
    ("first-write", "claim", "redis.call('ZREM', prefix .. ':ready:0', group)"),
    ("first-write", "claim", "if n then redis.call('GETEX', lock) end\nredis.call('SET', lock, n, 'PX', n)"),
    (
        "first-write",
        "claim",
        "local best\nif n then redis.call('GETEX', lock) best = n end\nredis.call('SET', lock, n, 'PX', n)",
    ),
    ("first-write", "ack", "redis.call('LPOP', q)"),
    ("first-write", "nack", "redis.call('ZADD', prefix .. ':ready:0', '0', group)"),
    ("first-write", "extend", "local function go() redis.call('ZADD', prefix .. ':ready:0', '0', group) end\ngo()"),
    ("first-write", "ack", "for t = 1, n do redis.call('DEL', lock) end\nredis.call('LPOP', q)"),
    ("replies", "ack", "return true"),
    ("replies", "ack", "return false"),
    ("replies", "ack", "return n == '1'"),
    ("replies", "ack", "return 2.5"),
    ("replies", "ack", "return n + 1"),
    ("replies", "ack", "return tonumber(n)"),
    ("replies", "ack", "return redis.call('GET', lock)"),
    ("replies", "claim", "return redis.call('SET', lock, n, 'PX', n)"),
    ("replies", "ack", "return { ok = 'done' }"),
    ("replies", "ack", "return { err = 'REDISQ_BADARG' }"),
    ("replies", "ack", "return { group, { n, true } }"),
    ("replies", "ack", "return { group, redis.call('GET', lock) }"),
    ("replies", "ack", "return group, n"),
    ("replies", "ack", "local function ok() return true end\nreturn ok()"),
    ("errors", "ack", "return redis.error_reply('ERR bad group')"),
    ("errors", "ack", "return redis.error_reply(n)"),
    ("errors", "ack", "return redis.error_reply()"),
    (
        "errors",
        "ack",
        "local function bad(code) return redis.error_reply(code .. ' bad') end\nreturn bad('REDISQ_BADARGS')",
    ),
]

# What is right, though it looks much like a violation.
SOUND = {
    "missing reply": ("ack", "if redis.call('GET', lock) then return 1 end"),
    "compared integer": ("ack", "if redis.call('LLEN', q) == 0 and n then return 1 end"),
    "counter in a key": ("ack", "for t = 0, 4 do redis.call('ZSCORE', prefix .. ':ready:' .. t, group) end"),
    "counter as a string": (
        "ack",
        "for t = 0, 4 do\nredis.call('ZSCORE', prefix .. ':ready:' .. tostring(t), group)\nend",
    ),
    "digits of a sum": (
        "nack",
        "redis.call('DEL', lock)\nredis.call('ZADD', prefix .. ':ready:0', string.format('%.0f', n + 1), group)",
    ),
    "time on one branch": ("ack", "if n == '' then\nn = redis.call('TIME')[1]\nelse\nredis.call('DEL', lock)\nend"),
    "time on two branches": ("ack", "if n == '' then\nn = redis.call('TIME')[1]\nelse\nn = redis.call('TIME')[2]\nend"),
    "write after the loop": (
        "ack",
        "for t = 1, 2 do if n then return 0 end end\nredis.call('DEL', lock)\nredis.call('LPOP', q)",
    ),
    "nothing found, nothing written": (
        "claim",
        "local best\nif n then\nredis.call('GETEX', lock)\nbest = { n }\nend\n"
        "if not best then return nil end\nredis.call('SET', lock, best[1], 'PX', n)",
    ),
    "free in any order for publish": ("publish", "redis.call('HSET', prefix .. ':prio', group, '0')"),
    "length as a reply": ("publish", "return redis.call('RPUSH', q, n)"),
    "narrowed by type": (
        "claim",
        "local head = redis.pcall('LINDEX', q, '0')\nif type(head) == 'string' then\nreturn { group, head }\nend",
    ),
    "repeat": ("ack", "repeat local at = n until at"),
    "old escapes": ("ack", r"return '\65\\x\n'"),
    "field names": ("ack", "local t = { count = n }\nif t.count then return 1 end"),
}


@pytest.mark.parametrize("name", NAMES)
def test_scripts_are_clean(name: str) -> None:
    """Each script keeps every rule."""
    assert lint(name, package_scripts()[f"{name}.lua"]) == []


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("name", NAMES)
def test_layout_and_names_do_not_matter(name: str, rewrite: str) -> None:
    """A script is as clean when it is laid out otherwise, or its locals are renamed."""
    assert lint(name, REWRITES[rewrite](package_scripts()[f"{name}.lua"])) == []


@pytest.mark.parametrize(("rule", "script", "snippet"), VIOLATIONS)
def test_violation_is_caught(rule: str, script: str, snippet: str) -> None:
    """A violation is found by its rule, behind the lines that break none."""
    found = [finding for finding in lint(script, f"{HEAD}{snippet}\n") if finding.rule == rule]
    assert found
    # A script of an unknown name has its finding at the top.
    assert all(finding.line > HEAD.count("\n") or script == "peek" for finding in found)


def test_every_rule_is_shown_to_fail() -> None:
    """No rule is without a violation above."""
    assert {rule for rule, _, _ in VIOLATIONS} == set(RULES)


@pytest.mark.parametrize("sound", SOUND)
def test_sound_code_is_clean(sound: str) -> None:
    """What only looks like a violation is none."""
    script, snippet = SOUND[sound]
    assert lint(script, f"{HEAD}{snippet}\n") == []


@pytest.mark.parametrize(
    ("line", "source"), [(1, "#!lua name=x\nreturn 1"), (1, "return 'caf\u00e9'"), (1, "return 1\r\n")]
)
def test_shebang_and_odd_bytes_are_caught(line: int, source: str) -> None:
    """A shebang, a byte that is no ASCII, and a carriage return break the rule of portable sources."""
    assert [(finding.line, finding.rule) for finding in lint("ack", source)] == [(line, "portable")]


def test_no_lua_is_a_finding() -> None:
    """A source that does not parse is a finding and no crash."""
    assert [finding.rule for finding in lint("ack", "return = 1")] == ["syntax"]


def test_growing_values_come_to_an_end() -> None:
    """A string or table that grows in a loop is followed only so far."""
    growing = "for i = 1, 3 do\nq = 'y' .. q .. 'x'\nlock = q .. lock\nn = { n }\nend\nredis.call('GET', lock)\n"
    assert [finding.rule for finding in lint("ack", HEAD + growing)] == ["key-space"]


def test_each_rule_has_its_sentence() -> None:
    """The docstring of each rule is one sentence."""
    for check in RULES.values():
        assert check.__doc__
        assert check.__doc__.endswith(".")
        assert "\n" not in check.__doc__


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says file, line, rule and cure, and exits 0, 1 or, without files, 2."""
    folder = files("redisq") / "lua"
    assert main([str(folder / f"{name}.lua") for name in NAMES]) == 0
    assert capsys.readouterr().out == f"files: 5, rules: {len(RULES)}, findings: 0\n"
    file = tmp_path / "ack.lua"
    file.write_text(f"{HEAD}return true\n")
    assert main([str(file)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{file}:3: replies: the reply can be boolean: return a string, an integer, nil or an array"
    assert printed[1] == f"files: 1, rules: {len(RULES)}, findings: 1"
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_gate_lints_every_script() -> None:
    """tox expands no pattern, so its command names the scripts: all of them."""
    tox = ConfigParser(interpolation=None)
    tox.read(Path(__file__).parents[2] / "tox.ini", encoding="utf-8")
    words = tox["testenv:lint"]["commands"].split()
    assert sorted(word for word in words if word.endswith(".lua")) == sorted(f"redisq/lua/{name}.lua" for name in NAMES)
