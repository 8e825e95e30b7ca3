"""The forms of the scripts' arguments, checked before anything else happens.

The numeric forms admit one spelling of each number, so that no command of a script can read it otherwise:
Lua's ``tonumber`` alone would take ``1e3``, ``007``, `` 5`` or ``0x10``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from model.operation import ARGV, Error

_NOT_EMPTY = re.compile(rb"[\s\S]+")
_ANY = re.compile(rb"[\s\S]*")
_TOKEN = re.compile(rb"(?!parked\Z)[\s\S]+")
_MS = re.compile(rb"0|[1-9][0-9]{0,14}")
_MS_OR_CLOCK = re.compile(rb"0|[1-9][0-9]{0,14}|")
_MS_NOT_ZERO = re.compile(rb"[1-9][0-9]{0,14}")
_PAGE = re.compile(rb"[1-9][0-9]?")
_INTEGER = re.compile(rb"0|-?[1-9][0-9]*")

FORMS = {
    "prefix": _NOT_EMPTY,
    "group": _NOT_EMPTY,
    "payload": _ANY,
    "token": _TOKEN,
    "priority": _INTEGER,
    "min_priority": _INTEGER,
    "now": _MS_OR_CLOCK,
    "score": _MS_OR_CLOCK,
    "px": _MS_NOT_ZERO,
    "delay": _MS,
    "K": _PAGE,
}


def check(script: str, argv: Sequence[bytes]) -> Error | None:
    """REDISQ_BADARG naming every argument that is not of its form, or None when all are."""
    names = ARGV[script]
    if len(argv) not in ({4, 5} if script == "publish" else {len(names)}):
        return Error("REDISQ_BADARG", ("ARGV",))
    bad = tuple(name for name, value in zip(names, argv, strict=False) if not FORMS[name].fullmatch(value))
    return Error("REDISQ_BADARG", bad) if bad else None


def tier(priority: bytes) -> int:
    """A priority of valid form, clamped to 0..4."""
    return min(max(int(priority[:2]), 0), 4)  # a sign and a digit, or two digits, decide


def clock(now: bytes, servers_ms: int) -> int:
    """The instant an argument ``now`` or ``score`` names: its own, or the server's clock when it is empty."""
    return int(now) if now else servers_ms
