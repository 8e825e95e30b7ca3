"""doctor: can this server, this user and this client carry a queue, and what will surprise.

It writes nothing. What the user may not ask is a finding of its own, and the examination goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from redisq import arguments
from redisq.errors import InvalidArgument
from redisq.keys import encode, hash_tag
from redisq.ops import queues, rights
from redisq.ops.finding import Finding, Severity

OK, WARNING, ERROR = Severity.OK, Severity.WARNING, Severity.ERROR
OLDEST = (6, 2)
NEARLY_FULL = 0.9
SKEW_SECONDS = 1.0

Found = Iterator[Finding]


class Patient:
    """What is examined: a client, and perhaps the prefix of a queue. `info` is INFO, empty where that is refused."""

    def __init__(self, client: Any, prefix: str | None) -> None:
        self.client = client
        self.prefix = prefix
        self.info: dict[str, Any] = {}

    def config(self, name: str) -> str | None:
        """A setting; None where CONFIG is refused or renamed, as at most managed services."""
        try:
            reply = self.client.config_get(name)
        except Exception:  # whatever the client raises for a refusal
            return None
        return str(reply[name]) if name in reply else None


def doctor(client: Any, prefix: str | None = None) -> list[Finding]:
    """Examines a server through a blocking client, with the rights of its user.

    - `prefix`: of the queue; without one, what depends on it is left out.

    Raises what the client raises if the server does not answer at all.
    """
    patient = Patient(client, prefix)
    client.ping()
    findings: list[Finding] = []
    for check in CHECKS:
        findings += check(patient)
    return findings


def _info(patient: Patient) -> Found:
    try:
        patient.info = patient.client.info("all") or {}
    except Exception as error:  # as above
        why = "version, memory, persistence and replication cannot be judged"
        yield Finding("info", WARNING, "INFO", f"refused: {error}", why, "allow the user +info, or ask who may")


def _server(patient: Patient) -> Found:
    info = patient.info
    version = str(info.get("valkey_version") or info.get("redis_version") or "")
    if not version:
        return
    name = "Valkey" if info.get("valkey_version") else "Redis"
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        why = "the scripts need GETEX, which is of 6.2"
        yield Finding("server", ERROR, f"{name} {version}", "too old", why, "use Redis 6.2 or newer, or Valkey")
    else:
        yield Finding("server", OK, f"{name} {version}", "is supported")
    if info.get("loading"):
        why = "every operation is answered LOADING until it is done"
        yield Finding("loading", WARNING, "server", "it still loads its data", why, "wait")


def _memory(patient: Patient) -> Found:
    info = patient.info
    policy = str(info.get("maxmemory_policy") or patient.config("maxmemory-policy") or "")
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    if not policy:
        why = "with another policy than noeviction, locks and messages can be deleted"
        yield Finding("policy", WARNING, "maxmemory-policy", "is not to be seen", why, "ask who may see it")
    elif policy == "noeviction":
        yield Finding("policy", OK, "maxmemory-policy", "is noeviction")
    else:
        why = "a server that evicts deletes locks (one message to two workers) and, under allkeys-*, messages"
        now = "" if limit else "; nothing is evicted yet, for maxmemory is not set"
        fix = "CONFIG SET maxmemory-policy noeviction"
        yield Finding("policy", ERROR if limit else WARNING, "maxmemory-policy", f"is {policy}{now}", why, fix)
    if limit and used > NEARLY_FULL * limit:
        why = "a full server refuses publishes with OOM; what is stored can still be claimed and settled"
        fix = "raise maxmemory, or add workers"
        yield Finding("memory", WARNING, "maxmemory", f"{used / limit:.0%} of it is used", why, fix)


def _persistence(patient: Patient) -> Found:
    info = patient.info
    if "aof_enabled" not in info:
        return
    if not info["aof_enabled"]:
        saves = patient.config("save")
        what = "the AOF is off" + ("" if saves is None else ", snapshots are " + ("on" if saves else "off"))
        why = "a crash loses the queue" + (" since the last snapshot" if saves != "" else "")
        fix = "CONFIG SET appendonly yes, and keep it in the configuration"
        yield Finding("persistence", WARNING, "appendonly", what, why, fix)
        return
    fsync = patient.config("appendfsync")
    if info.get("aof_last_write_status", "ok") != "ok":
        why = "writes are refused with MISCONF, or lost"
        yield Finding("persistence", ERROR, "AOF", "the last write failed", why, "see the server's log; free its disk")
    elif fsync == "no":
        why = "a loss of power can lose about half a minute of acknowledged work"
        yield Finding("persistence", WARNING, "appendfsync", "is no", why, "CONFIG SET appendfsync everysec, or always")
    else:
        lost = {"always": "nothing that was answered is lost", "everysec": "a loss of power can lose the last second"}
        yield Finding("persistence", OK, "appendfsync", f"is {fsync or 'not to be seen'}", lost.get(fsync or "", ""))


def _replication(patient: Patient) -> Found:
    info = patient.info
    role = info.get("role")
    if role == "slave":
        why = "every operation is answered READONLY"
        yield Finding("replication", ERROR, "role", "this is a replica", why, "connect to the primary")
    elif role == "master" and int(info.get("connected_slaves", 0)):
        least = patient.config("min-replicas-to-write")
        if least in (None, "0"):
            what = "is 0" if least else "is not to be seen"
            why = "an old primary goes on alone after a failover: what it accepts is lost, leases are given out twice"
            fix = "CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag 10"
            yield Finding("replication", WARNING, "min-replicas-to-write", what, why, fix)
        else:
            yield Finding("replication", OK, "min-replicas-to-write", f"is {least}")


def _clock(patient: Patient) -> Found:
    before = time.time()
    try:
        seconds, us = patient.client.time()
    except Exception as error:  # as above
        yield Finding("clock", WARNING, "TIME", f"refused: {error}", "the skew of the clocks is not known")
        return
    after = time.time()
    servers = seconds + us / 1e6
    skew = servers - min(max(servers, before), after)  # 0 while the call was under way
    if abs(skew) > SKEW_SECONDS:
        why = "harmless with the server's clock, the default; with `clock`, leases end early or groups come late"
        fix = "synchronise the clocks (NTP), or leave `clock` at None"
        yield Finding("clock", WARNING, "skew", f"the server is {skew:+.1f} s off this machine", why, fix)
    else:
        yield Finding("clock", OK, "skew", "server and this machine agree to a second")


def _prefix(patient: Patient) -> Found:
    if patient.prefix is None:
        return
    try:
        arguments.prefix(patient.prefix, patient.client)
    except InvalidArgument as error:
        yield Finding("prefix", ERROR, repr(patient.prefix), str(error), "the library refuses it", "take another")
        return
    clustered = bool(int(patient.info.get("cluster_enabled", 0)))
    if clustered and not hash_tag(patient.prefix):
        why = "in a cluster the keys of the queue lie in several slots, and scripts end midway"
        yield Finding("prefix", ERROR, repr(patient.prefix), "has no hash tag", why, f"use {{{patient.prefix}}}")


def _collisions(patient: Patient) -> Found:
    try:
        found, whole = queues.prefixes(patient.client)
    except Exception as error:  # as above
        why = "queues whose prefixes collide cannot be seen"
        yield Finding("collision", WARNING, "SCAN", f"refused: {error}", why, "allow the user +scan, or ask who may")
        return
    if patient.prefix is not None:
        found.add(encode(patient.prefix))
    for outer, inner in sorted(queues.collisions(found)):
        if patient.prefix is None or encode(patient.prefix) in (outer, inner):
            why = "they share keys: each reads and deletes what the other wrote"
            fix = "drain one of them and give it another prefix"
            what = (
                f"there are queues under {outer.decode('utf-8', 'replace')!r} and {inner.decode('utf-8', 'replace')!r}"
            )
            yield Finding("collision", ERROR, "prefix", what, why, fix)
    if not whole:
        what = f"only the first {queues.MOST:,} keys were looked through for other queues"
        yield Finding("collision", OK, "prefix", what)


def _client(patient: Patient) -> Found:
    retries = retries_of(patient.client)
    why = (
        "a call whose reply is lost is repeated: publish can store twice, claim answer None though it took a lease, "
        "ack answer False though it settled"
    )
    fix = "redis.Redis(..., retry=Retry(NoBackoff(), 0)), and decide yourself what to repeat"
    if retries is None:
        yield Finding("retries", WARNING, "client", "whether it retries by itself is not to be seen", why, fix)
    elif retries:
        yield Finding("retries", WARNING, "client", f"it retries {retries} times by itself", why, fix)
    else:
        what = "it does not retry by itself (redis.Redis(host, port) would, ten times; redis.Redis.from_url does not)"
        yield Finding("retries", OK, "client", what)


def retries_of(client: Any) -> int | None:
    """How often a client repeats a call by itself; None if it does not say."""
    pool = getattr(client, "connection_pool", None)
    options = getattr(pool, "connection_kwargs", None)
    if options is None:
        retry = getattr(client, "retry", None)  # of a cluster
    else:
        retry = options.get("retry")
        if retry is None:
            return int(bool(options.get("retry_on_timeout")))
    count = getattr(retry, "_retries", None)
    return count if isinstance(count, int) else None


CHECKS: tuple[Callable[[Patient], Found], ...] = (
    _info,
    _server,
    _memory,
    _persistence,
    _replication,
    lambda patient: rights.check(patient.client, patient.prefix or "redisq"),
    _clock,
    _prefix,
    _collisions,
    _client,
)
