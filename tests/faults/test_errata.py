"""Each fault of the original design by its real cause, and its absence here, on every real server.

The checks are in `checks`; that each convicts the designs which undo just its correction is in `test_controls.py`.
"""

from __future__ import annotations

import pytest

from redisq import InvalidArgument, RedisTransport
from tests.faults.checks import CHECKS, check_e8, check_e11_default
from tests.faults.judge import Control, Judge


def test_e1(judge: Judge) -> None:
    """E1: a client that comes between the round trips of a nack keeps its lock; the original frees it."""
    judge.shows(CHECKS["E1"], "B and C hold one group at once")


def test_e2(judge: Judge) -> None:
    """E2: the token of a parked group no longer settles; the original's ack takes the message away."""
    judge.shows(CHECKS["E2"], "a settled lease acks: the parked message is gone")


def test_e3(judge: Judge) -> None:
    """E3: clocks 40 s ahead and 60 s behind hide no free group; the original's window is full of leased ones."""
    judge.shows(CHECKS["E3"], "a claimer whose clock is ahead does not find the free group")


def test_e4(judge: Judge) -> None:
    """E4, kept: a lease and a park live through the millisecond of their deadline: at -1, 0 and +1 ms."""
    judge.keeps(CHECKS["E4"])


def test_e5(judge: Judge) -> None:
    """E5: a server at maxmemory can be drained; the original's claim is refused for ever."""
    judge.shows(CHECKS["E5"], "a full server refuses claim")


def test_e6(judge: Judge) -> None:
    """E6: a priority that is no integer is refused; the original files its group where no claim looks."""
    judge.shows(CHECKS["E6"], "accepted, and no claim reads its tier")


def test_e7(judge: Judge) -> None:
    """E7: the arguments of claim are checked and clamped first; the original walks 20,005 tiers."""
    judge.shows(CHECKS["E7"], r"min_priority -20000 makes the claim run 200\d\d commands")


def test_e8(judge: Judge) -> None:
    """E8: two prefixes share a key, for any scripts; the client refuses the second prefix before any I/O."""
    judge.convicts(Control(check_e8, r"they collide: \(b'y', b'2'\) and None"))
    judge.convicts(Control(check_e8, "they collide: None", "original"))
    RedisTransport(judge.host.client(), prefix="p")
    for prefix in ("p:q", "p:lock", "a:ready:b"):
        with pytest.raises(InvalidArgument, match="another queue could share keys with it"):
            RedisTransport(judge.host.client(), prefix=prefix)


def test_e9(judge: Judge) -> None:
    """E9, kept: ties go to the lower tier, then to the smaller bytes; `min_priority` serves high tiers first."""
    judge.keeps(CHECKS["E9"])


def test_e10(judge: Judge) -> None:
    """E10, kept: a retry at once gets 50 of 50 claims before a served group; with a delay it does not."""
    judge.keeps(CHECKS["E10"])


def test_e11(judge: Judge) -> None:
    """E11: new groups first is kept as the default; scored by arrival, which the original lacks, none is starved."""
    judge.keeps(check_e11_default)
    judge.shows(CHECKS["E11"], "a stream of new groups starves a served one")


def test_e12(judge: Judge) -> None:
    """E12: a claim goes on behind stale entries and takes their fields; the original answers nil."""
    judge.shows(CHECKS["E12"], "a claim answers nil though a live group follows")


def test_e13(judge: Judge) -> None:
    """E13: a broken key, or a user without LINDEX, stops and drops no other group; the original stops at once."""
    judge.shows(CHECKS["E13"], "one list of another type stops every claim")


def test_e14(judge: Judge) -> None:
    """E14: a lock that lost its TTL to PERSIST or a restore ends with its lease; the original's holds for ever."""
    judge.shows(CHECKS["E14"], "after PERSIST the lock blocks its group for ever")


def test_e15(judge: Judge) -> None:
    """E15: a command refused to a user in the middle of a script loses nothing and heals; the original loses it."""
    judge.shows(CHECKS["E15"], "has messages and no index entry")


def test_e16(judge: Judge) -> None:
    """E16: a `prio` field lost in any state is recovered; the original puts the group into two tiers."""
    judge.shows(CHECKS["E16"], r"the group is in tiers \[2, 4\]")
