"""Ports that get the queue wrong. ``rejected_by`` names cases of the spec that must convict each."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.ports.zoo.base import ALL, Port, Request, Unsupported, encode, tag, untag


class Lifo(Port):
    """Delivers the newest message of a group first."""

    rejected_by = ("CLAIM-9a", "PUBLISH-1a")
    edits = (("publish", "'RPUSH', q, payload", "'LPUSH', q, payload"),)


class SecondClaim(Port):
    """Gives a group out though it is in flight: it looks at no lock."""

    rejected_by = ("CLAIM-7a", "CLAIM-13b")
    edits = (("claim", "if held then", "if false then"), ("claim", "now + px), best[1])", "now), best[1])"))


class AckWithoutFence(Port):
    """Acks whatever token it is given."""

    rejected_by = ("SETTLE-1a", "SETTLE-1c", "SETTLE-2a", "FAIL-3a", "SETTLE-1e")
    edits = (("ack", "if redis.call('GET', lock) ~= token then", "if false then"),)


class AckAfterExpiry(Port):
    """Remembers its leases itself, and acks one that has ended."""

    rejected_by = ("SETTLE-1b", "TIME-3b", "ACK-5a")

    def ack(self, request: Request) -> Any:
        lock, token = self.key("lock", untag(request["group"])), untag(request["token"])
        if token in self.mine:
            self.client.set(lock, token, px=1000, nx=True)
        return super().ack(request)

    def claim(self, request: Request) -> Any:
        self.mine = {*vars(self).get("mine", ()), untag(request["token"])}
        return super().claim(request)


class ExpiryOffByOne(Port):
    """A lease lasts a millisecond less than it was asked for."""

    rejected_by = ("TIME-3a", "CLAIM-11a", "ACK-5a")
    edits = (("claim", "token, 'PX', px)", "token, 'PX', px == '1' and px or string.format('%.0f', px - 1))"),)


class DueExclusive(Port):
    """A group is due only after its score has passed."""

    rejected_by = ("CLAIM-2a", "PUBLISH-6b")
    edits = (
        (
            "claim",
            "ready, '-inf', bound, 'WITHSCORES', 'LIMIT', '0', '1')",
            "ready, '-inf', string.sub(bound, 1, 1) == '(' and bound or '(' .. bound, 'WITHSCORES', 'LIMIT', '0', '1')",
        ),
    )


class ForgetsThePark(Port):
    """Takes a nack with a delay for one without."""

    rejected_by = ("NACK-3a", "CLAIM-2b", "TIME-3c")

    def nack(self, request: Request) -> Any:
        return super().nack({**request, "delay_ms": 0})


class ParkWithoutLock(Port):
    """Parks by the score alone, so a claimer whose clock is ahead takes the group."""

    rejected_by = ("NACK-4a", "SETTLE-4a")
    edits = (("nack", "redis.call('SET', lock, 'parked', 'PX', delay)", "do end"),)


class NackToTail(Port):
    """A message that is given back goes behind the others of its group."""

    rejected_by = ("NACK-1a",)
    edits = (
        (
            "nack",
            "redis.call('DEL', lock)",
            "redis.call('DEL', lock) local q = prefix .. ':q:' .. group redis.call('RPUSH', q, redis.call('LPOP', q))",
        ),
    )


class DecodesText(Port):
    """Takes payloads for UTF-8."""

    rejected_by = ("KEYS-1a",)

    def publish(self, request: Request) -> Any:
        text = untag(request["payload"]).decode(errors="replace").encode() if "argv" not in request else None
        return super().publish(request if text is None else {**request, "payload": tag(text)})


class DropsEmpty(Port):
    """Takes an empty payload for no message."""

    rejected_by = ("CLAIM-10a", "KEYS-1c")

    def publish(self, request: Request) -> Any:
        return 0 if "argv" not in request and not untag(request["payload"]) else super().publish(request)


class LastPriority(Port):
    """The priority of the last publish counts."""

    rejected_by = ("PUBLISH-4a",)

    def publish(self, request: Request) -> Any:
        reply = super().publish(request)
        if "argv" not in request and isinstance(request["priority"], int):
            tier, group = min(4, max(0, request["priority"])), untag(request["group"])
            self.client.hset(self.prefix.decode("latin-1") + ":prio", group.decode("latin-1"), str(tier))
        return reply


class TieToHigherTier(Port):
    """Of equal scores the higher tier wins."""

    rejected_by = ("CLAIM-4a", "CLAIM-4b")
    edits = (
        (
            "claim",
            "best, bound = { group, payload, ready }, '(' .. score",
            "best, bound = { group, payload, ready }, score",
        ),
    )


class TieByArrival(Port):
    """New groups are served in the order in which they came, at a score of now."""

    rejected_by = ("CLAIM-3a", "PUBLISH-2a")

    def publish(self, request: Request) -> Any:
        return super().publish(request if "argv" in request else {**request, "score_ms": None})


class ScoresInSeconds(Port):
    """Writes scores in seconds."""

    rejected_by = ("CLAIM-11a", "CLAIM-11b")
    edits = (
        (
            "claim",
            "redis.call('ZADD', best[3], string.format('%.0f', now + px), best[1])",
            "redis.call('ZADD', best[3], string.format('%.0f', (now + px) / 1000), best[1])",
        ),
    )


class IgnoresMinPriority(Port):
    """Looks at every tier."""

    rejected_by = ("CLAIM-6a", "PUBLISH-5a")

    def claim(self, request: Request) -> Any:
        return super().claim(request if "argv" in request else {**request, "min_priority": 0})


class LeavesPrio(Port):
    """Leaves the prio field when it drains a group."""

    rejected_by = ("KEYS-4a", "PUBLISH-4b", "ACK-4a")
    edits = (("ack", "  redis.call('HDEL', prio, group)\n", ""),)


class PublishesTwice(Port):
    """Sends a publish again, as after a lost reply."""

    rejected_by = ("PUBLISH-1a", "PUBLISH-1b")

    def publish(self, request: Request) -> Any:
        super().publish(request)
        return super().publish(request)


class DropsRepeats(Port):
    """Takes an equal payload for a repeated publish."""

    rejected_by = ("FAIL-1a", "ACK-1b")

    def publish(self, request: Request) -> Any:
        if "argv" not in request:
            held = self.client.lrange(self.key("q", untag(request["group"])), 0, -1)  # type: ignore[arg-type]
            if untag(request["payload"]) in held:  # type: ignore[operator]
                return len(held)  # type: ignore[arg-type]
        return super().publish(request)


class CutsAtColon(Port):
    """Cuts the id of a group at its first colon."""

    rejected_by = ("KEYS-2a", "KEYS-3a")

    def call(self, script: str, request: Request, *names: str) -> Any:
        if "argv" not in request and "group" in request:
            request = {**request, "group": tag(untag(request["group"]).split(b":")[0] or b":")}
        return super().call(script, request, *names)


class PrefixOnce(Port):
    """Keeps the prefix of its first open."""

    rejected_by = ("KEYS-5a", "KEYS-5b")

    def open(self, request: Request) -> None:
        super().open(request)
        self.prefix = vars(self).setdefault("first", self.prefix)


class OwnClock(Port):
    """Declares the server's clock, and sends an hour more."""

    rejected_by = ("CLAIM-2b", "TIME-1a")

    def call(self, script: str, request: Request, *names: str) -> Any:
        if request.get("now_ms", 0) is None and script != "publish":
            request = {**request, "now_ms": request["time_ms"] + 3_600_000}
        return super().call(script, request, *names)


class ExtendsLockOnly(Port):
    """Renews the lock and not the score."""

    rejected_by = ("EXTEND-1a", "EXTEND-3a")
    edits = (("extend", "redis.call('ZADD', ", "redis.call('ZADD', 'x' .. "),)

    def extend(self, request: Request) -> Any:
        if "argv" in request or any(not isinstance(request[n], int | None) for n in ("now_ms", "visibility_ms")):
            return super().extend(request)
        lock = self.key("lock", untag(request["group"]))
        if self.client.get(lock) != untag(request["token"]) or request["visibility_ms"] < 1:
            return super().extend(request)
        return int(bool(self.client.pexpire(lock, request["visibility_ms"])))


class UncheckedArguments(Port):
    """Passes on whatever Lua takes for a number."""

    rejected_by = ("ARG-4a", "E6-1")

    def publish(self, request: Request) -> Any:
        if "argv" in request:
            return super().publish(request)
        group, tier = untag(request["group"]), encode(request["priority"])
        self.client.zadd(self.prefix + b":ready:" + tier, {group: 0}, nx=True)
        self.client.hsetnx((self.prefix + b":prio").decode("latin-1"), group, tier)  # type: ignore[arg-type]
        return self.client.rpush(self.key("q", group), untag(request["payload"]))  # type: ignore[arg-type]


class OneWindow(Port):
    """Looks at one page only."""

    rejected_by = ("CLAIM-14a", "CLAIM-17b")
    edits = (("claim", "more = not payload and #page == 2 * K", "more = false"),)


class NackInTwoSteps(Port):
    """Looks at the lock in one round trip, and writes in another."""

    rejected_by = ("E1-2",)

    def nack(self, request: Request) -> Any:
        if "argv" in request or not isinstance(request["delay_ms"], int) or request["delay_ms"] < 0:
            return super().nack(request)
        lock = self.key("lock", untag(request["group"]))
        if self.client.get(lock) != untag(request["token"]):
            return super().nack(request)
        self.client.set(lock, untag(request["token"]), keepttl=True, xx=True)
        self.client.execute_command("SET", lock, untag(request["token"]), "PX", 1)  # type: ignore[no-untyped-call]
        return super().nack(request)


class PushesFirst(Port):
    """Stores the message before it is in the index."""

    rejected_by = ("E15-2",)

    def publish(self, request: Request) -> Any:
        if (
            "argv" in request
            or not isinstance(request["priority"], int)
            or not isinstance(request["score_ms"], int | None)
        ):
            return super().publish(request)
        q = self.key("q", untag(request["group"]))
        length = self.client.rpush(q, untag(request["payload"]))
        super().publish(request)
        self.client.rpop(q)
        return length


class SetFirst(Port):
    """A claim begins with SET, which a full server refuses."""

    rejected_by = ("E5-1",)
    edits = (
        ("claim", "local held = redis.pcall('GETEX', lock)", "local held = redis.pcall('GET', lock)"),
        ("claim", "redis.call('GETEX', lock)", "redis.call('GET', lock)"),
    )


class Hesitant(Port):
    """Declares a capability and answers that it has not got it."""

    rejected_by = ("EXTEND-1a", "EXTEND-2b")
    capabilities: ClassVar[tuple[str, ...]] = ALL

    def extend(self, request: Request) -> Any:
        raise Unsupported("not yet")


WRONG: dict[str, Any] = {
    name: kind
    for name, kind in list(vars().items())
    if isinstance(kind, type) and issubclass(kind, Port) and kind is not Port
}
