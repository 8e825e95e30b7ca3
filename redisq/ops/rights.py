"""Which of the commands that the scripts use the user may not run: asked of the server, nothing is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from redisq.keys import Keys, encode
from redisq.ops.finding import Finding, Severity
from redisq.scripts import NAMES, SCRIPTS

_COMMAND = re.compile(rb"redis\.p?call\('([A-Z]+)'")
COMMANDS = {name: sorted(set(_COMMAND.findall(SCRIPTS[name].source))) for name in NAMES}
"""By script, the commands in it, as bytes."""

ARGUMENTS: Mapping[bytes, tuple[str | bytes, ...]] = {
    b"TIME": (),
    b"SET": ("lock", b"t", b"PX", b"1"),
    b"GETEX": ("lock",),
    b"GET": ("lock",),
    b"DEL": ("lock",),
    b"PTTL": ("lock",),
    b"TYPE": ("lock",),
    b"PEXPIRE": ("lock", b"1"),
    b"RPUSH": ("q", b"m"),
    b"LPOP": ("q",),
    b"LLEN": ("q",),
    b"LINDEX": ("q", b"0"),
    b"HGET": ("prio", b"g"),
    b"HSET": ("prio", b"g", b"0"),
    b"HDEL": ("prio", b"g"),
    b"ZADD": ("ready", b"0", b"g"),
    b"ZREM": ("ready", b"g"),
    b"ZSCORE": ("ready", b"g"),
    b"ZRANGEBYSCORE": ("ready", b"-inf", b"0"),
}

ASK = b"""
local refused, at = {}, 1
while ARGV[at] do
  local command = {}
  for i = 1, ARGV[at] do
    command[i] = ARGV[at + i]
  end
  if not redis.acl_check_cmd(unpack(command)) then
    refused[#refused + 1] = command[1]
  end
  at = at + ARGV[at] + 1
end
return refused
"""
"""ARGV: for each command how many words it has, and the words. Replies those that the user may not run."""

CAN_ASK = b"return redis.acl_check_cmd and 1 or 0"
TIME = b"redis.call('TIME') return 1"


def check(client: Any, prefix: str) -> Iterator[Finding]:
    """Whether scripts run, TIME in them, and each command of each script under that prefix."""
    can_ask = _run(client, CAN_ASK)
    if isinstance(can_ask, Exception):
        fix = "allow the user +eval and +evalsha"
        yield Finding("scripts", Severity.ERROR, "EVAL", f"refused: {can_ask}", "every operation is a script", fix)
        return
    asked = _run(client, b"return 1", by_sha=True)
    if isinstance(asked, Exception) and not _is_noscript(asked):
        fix = "allow the user +evalsha"
        yield Finding("scripts", Severity.ERROR, "EVALSHA", f"refused: {asked}", "every operation is a script", fix)
    else:
        yield Finding("scripts", Severity.OK, "EVAL, EVALSHA", "scripts run")
    time = _run(client, TIME)
    if isinstance(time, Exception):
        fix = "allow the user +time; where the service refuses it, pass RedisTransport(..., clock=time.time)"
        yield Finding("time", Severity.ERROR, "TIME in scripts", f"refused: {time}", "it is the queue's clock", fix)
    if can_ask != 1:
        what = "cannot be asked of this server (Redis has it since 7.0)"
        yield Finding("rights", Severity.OK, "commands", what, "a refused command shows in the first operation")
        return
    yield from _commands(client, prefix)


def _commands(client: Any, prefix: str) -> Iterator[Finding]:
    keys = Keys(encode(prefix))
    names = {"lock": keys.lock("g"), "q": keys.q("g"), "prio": keys.prio, "ready": keys.ready(0)}
    lines = [
        (command, *(names[word] if isinstance(word, str) else word for word in words))
        for command, words in ARGUMENTS.items()
    ]
    reply = _run(client, ASK, *(word for line in lines for word in (b"%d" % len(line), *line)))
    if isinstance(reply, Exception):
        yield Finding("rights", Severity.WARNING, "commands", f"could not be asked: {reply}")
        return
    refused = set(reply)
    for name in NAMES:
        lacking = [command.decode() for command in COMMANDS[name] if command in refused]
        if lacking:
            what = f"may not run {', '.join(lacking)} on the keys of {prefix!r}"
            why = "the script ends midway; nothing is lost, and nothing is done"
            fix = f"ACL SETUSER ... {' '.join('+' + command.lower() for command in lacking)} ~{prefix}:*"
            yield Finding("rights", Severity.WARNING, name, what, why, fix)
    if not refused:
        yield Finding("rights", Severity.OK, "commands", f"all of the scripts' are allowed under {prefix!r}")


def _run(client: Any, source: bytes, *argv: bytes, by_sha: bool = False) -> Any:
    """The undecoded reply, or the error."""
    command = ("EVALSHA", "0" * 40) if by_sha else ("EVAL", source)
    try:
        return client.execute_command(*command, 0, *argv, NEVER_DECODE=True)
    except Exception as error:  # whatever the client raises for a refusal
        return error


def _is_noscript(error: Exception) -> bool:
    return "NoScript" in type(error).__name__ or str(error).startswith("NOSCRIPT")
