"""What replies mean, and many calls in one round trip: which commands to send, which to repeat, what to tell."""

from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeVar

from redisq import arguments
from redisq.errors import RedisqError
from redisq.lease import Lease
from redisq.scripts import Call, Command

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def is_noscript(reply: object) -> bool:
    """Whether a reply says that the server does not have the script, and so that nothing ran.

    By the code or the class; the words after the code differ between servers.
    """
    return isinstance(reply, Exception) and (_is(reply, "NoScriptError") or str(reply).partition(" ")[0] == "NOSCRIPT")


def is_refusal(error: Exception) -> bool:
    """Whether the server answered with an error. After any other error it is unknown if the call took effect."""
    return _is(error, "ResponseError") or is_noscript(error)


def _is(error: Exception, name: str) -> bool:
    # By name, for no client library is imported here.
    return any(base.__name__ == name for base in type(error).__mro__)


def parts(calls: Sequence[Call[T]], chunk: SupportsIndex) -> list[Sequence[Call[T]]]:
    """The calls in parts of `chunk`, one for each round trip."""
    size = arguments.integer("chunk", chunk, 1, arguments.MAX_CALLS)
    return [calls[start : start + size] for start in range(0, len(calls), size)]


def in_order(calls: Sequence[Call[int]]) -> list[Command]:
    """The commands that publish in one round trip so that each group keeps its order.

    The first brings the script along. So does every message that another one of its group follows: it cannot meet
    a cache that was emptied on the way, be repaired after its follower and so come behind it.
    """
    last = {call.group: index for index, call in enumerate(calls)}
    return [call.by_sha if 0 < index == last[call.group] else call.by_source for index, call in enumerate(calls)]


def unserved(replies: Sequence[object]) -> list[int]:
    """The indexes of the calls to run again, by source and in order: those that met a cache without their script.

    And each claim after such a call that found nothing: it has taken nothing, and what it follows had not run yet.
    """
    first = next((index for index, reply in enumerate(replies) if is_noscript(reply)), len(replies))
    return [index for index in range(first, len(replies)) if replies[index] is None or is_noscript(replies[index])]


def outcome(call: Call[T], reply: Any) -> T | Exception:
    """What a call returns, or its error."""
    try:
        return reply if isinstance(reply, Exception) else call.read(reply)
    except RedisqError as error:
        return error


def check_stored(outcomes: Sequence[int | Exception], total: int) -> None:
    """Raises the first error, if any, among the outcomes of the messages sent so far."""
    for result in outcomes:
        if isinstance(result, Exception):
            raise report(result, outcomes, total)


def report(error: E, outcomes: Sequence[int | Exception], total: int, lost: int = 0) -> E:
    """Tells with the error which of `total` messages were stored. The outcome of `lost` after the others is unknown."""
    sent = len(outcomes)
    published = [result if isinstance(result, int) else None for result in outcomes] + [None] * (total - sent)
    unknown = [
        index for index, result in enumerate(outcomes) if isinstance(result, Exception) and not is_refusal(result)
    ]
    unknown += range(sent, sent + lost)
    stored = [index for index, length in enumerate(published) if length is not None]
    missing = sorted(set(range(total)).difference(stored, unknown))
    told = {"stored": stored, "not stored": missing, "unknown": unknown}
    error.add_note("publish_many: " + "; ".join(f"{what}: {_ranges(indexes)}" for what, indexes in told.items()))
    vars(error).update(published=published, unknown=unknown)
    return error


def _ranges(indexes: Sequence[int]) -> str:
    """Indexes in short: `0-3, 7`."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][-1] + 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ", ".join("-".join(map(str, run)) for run in runs) or "none"


def taken(outcomes: Sequence[Lease | Exception | None]) -> list[Lease]:
    """The leases of many claims. Only if there is none, the first error is raised: no lease is lost in an exception."""
    leases = [result for result in outcomes if isinstance(result, Lease)]
    if not leases:
        for result in outcomes:
            if isinstance(result, Exception):
                raise result
    return leases


def both(acked: bool | Exception, claimed: Lease | Exception | None) -> tuple[bool, Lease | None]:
    """The results of an ack and a claim; or the first error, which tells what the other one did."""
    if isinstance(acked, Exception):
        raise _told(acked, None, claimed)
    if isinstance(claimed, Exception):
        raise _told(claimed, acked, claimed)
    return acked, claimed


def _told(error: Exception, acked: bool | None, claimed: Lease | Exception | None) -> Exception:
    ack = {None: "failed", True: "settled the lease", False: "found that the token holds no lease"}[acked]
    claim = {Lease: "took a lease", type(None): "found nothing"}.get(type(claimed), "failed")
    error.add_note(f"ack_and_claim: the ack {ack}; the claim {claim}")
    vars(error).update(acked=acked, lease=claimed if isinstance(claimed, Lease) else None)
    return error
