"""The clocks of real servers: told what to show, or shifted where that is not to be had."""

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support import clock as clock_module
from tests.support import preload
from tests.support.clock import START_MS, ClockError, ShiftedClock, VirtualClock, server_ms
from tests.support.containers import Container
from tests.support.servers import BaseServer, Server, ServerSource, discover

DAY_MS = 86_400_000
SKIP = pytest.mark.skip(reason="no redis-server or valkey-server found")
SERVERS = [pytest.param(source, id=source.name) for source in discover()] or [pytest.param(None, id="none", marks=SKIP)]
QUEUE = b"q*[1]"  # a prefix that is also a pattern, and matches QUEUE_LIKE
QUEUE_LIKE = b"q:other1"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The tests of the virtual clock also run in containers, if images are given."""
    if "server" in metafunc.fixturenames:
        images = metafunc.config.getoption("redis_image", default=None) or []
        containers = [pytest.param(image, id=image, marks=pytest.mark.container) for image in images]
        metafunc.parametrize("server", SERVERS + containers, indirect=True, scope="module")


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[BaseServer]:
    """One of each server found, with the clock it starts with."""
    source: ServerSource | str = request.param
    with Container(source) if isinstance(source, str) else source.start() as started:
        yield started


@pytest.fixture(params=SERVERS, scope="module")
def shifted(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One of each server found, on a machine without a C compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CC", raising=False)
        patch.setattr("tests.support.preload.shutil.which", lambda _: None)
        started = request.param.start()
    with started:
        yield started


def virtual(server: BaseServer) -> VirtualClock:
    """The server's clock, or a visible skip where this machine has none to preload."""
    if not isinstance(server.clock, VirtualClock):
        assert preload.library()[0] is None, server.clock.reason  # with an object to preload, it has to work
        pytest.skip(f"no virtual clock here: {server.clock.reason}")
    return server.clock


def steps(seed: int, count: int) -> list[int]:
    """Time steps in ms: small, large and back, and among them one of thirty days."""
    draw = random.Random(seed)
    return [draw.choice([1, 1, 2, 17, 999, DAY_MS, -1, -250]) for _ in range(count)] + [30 * DAY_MS, -DAY_MS, 1]


def test_time_is_what_was_set(server: BaseServer) -> None:
    """After each of some hundred steps, forward, back and by thirty days, TIME is the instant that was set."""
    clock, client = virtual(server), server.client()
    for step_ms in steps(1, 300):
        clock.set_ms(clock.now_ms() + step_ms)
        assert server_ms(client) == clock.now_ms()
    for ms in (1, 1000, START_MS):  # the first second of the epoch is an instant like any other
        clock.set_ms(ms)
        assert server_ms(client) == ms


def test_time_stands_still(server: BaseServer) -> None:
    """The time does not pass by itself: it is the same after real milliseconds went by."""
    clock, client = virtual(server), server.client()
    begin = time.monotonic()
    while time.monotonic() < begin + 0.02:
        assert server_ms(client) == clock.now_ms()


def test_expiry_boundary(server: BaseServer) -> None:
    """A key is there at its deadline and gone one millisecond later, whatever the steps on the way."""
    clock, client = virtual(server), server.client()
    for step_ms in steps(2, 120):
        clock.set_ms(clock.now_ms() + step_ms)
        deadline_ms = clock.now_ms() + abs(step_ms)
        client.set("key", "value", px=abs(step_ms))
        clock.set_ms(deadline_ms)
        assert (client.exists("key"), client.pttl("key")) == (1, 0)
        clock.advance(1)
        assert client.exists("key") == 0


def test_deadline_lasts(server: BaseServer) -> None:
    """A server left alone at a deadline keeps the key, however often it looks for keys to delete by itself."""
    clock, client = virtual(server), server.client()
    client.config_set("hz", 500)  # it looks every two milliseconds of real time, 100 ms from now at the latest
    client.set("key", "value", px=10)
    clock.advance(10)
    begin = time.monotonic()
    while time.monotonic() < begin + 0.15:
        assert client.exists("key") == 1
    clock.advance(1)
    assert client.exists("key") == 0
    client.config_set("hz", 10)


@pytest.mark.parametrize("touch", [None, ["key"]])
def test_step_back_revives_nothing(server: BaseServer, touch: list[bytes | str] | None) -> None:
    """A key whose time is up stays gone when the clock steps back before its deadline."""
    clock, client = virtual(server), server.client()
    for _ in range(50):
        client.set("key", "value", px=10)
        clock.advance(11)
        clock.set_ms(clock.now_ms() - 5, touch=touch)
        assert client.exists("key") == 0


def test_step_back_unread_revives(server: BaseServer) -> None:
    """Control: without reading the keys, some whose time is up come alive again."""
    clock, client = virtual(server), server.client()
    alive = 0
    for _ in range(50):
        client.set("key", "value", px=10)
        clock.advance(11)
        clock.set_ms(clock.now_ms() - 5, touch=())
        alive += int(client.exists("key"))
    assert alive > 0


def test_clock_that_does_not_follow(server: BaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a server that reads another file than the one written is noticed at the first step."""
    monkeypatch.setattr(clock_module, "FOLLOW_SECONDS", 0.05)
    clock = virtual(server)
    start_ms = clock.now_ms()
    other = preload.InstantFile(tmp_path / "other", start_ms)
    strange = VirtualClock(other, server.client(), start_ms)
    with pytest.raises(ClockError, match=f"TIME shows {start_ms} ms, not {start_ms + 1} ms"):
        strange.set_ms(start_ms + 1)
    other.close()


def test_wrong_instants(server: BaseServer) -> None:
    """Instants before the epoch and time that runs backwards are refused, and the clock stays."""
    before_ms = server.clock.now_ms()
    with pytest.raises(ValueError, match="never negative"):
        server.clock.advance(-1)
    with pytest.raises((ValueError, ClockError)):
        server.clock.set_ms(0)
    assert server.clock.now_ms() >= before_ms


def test_bracket_of_a_virtual_clock(server: BaseServer) -> None:
    """Under a virtual clock both ends of a bracket are the instant that was set."""
    clock = virtual(server)
    with clock.bracket() as bracket:
        server.client().ping()
    assert bracket.before_ms == bracket.after_ms == clock.now_ms()


def test_real_time_is_noticed(shifted: Server, tmp_path: Path) -> None:
    """Control: a server with the real clock is not taken for one with a virtual clock, and is not waited for."""
    begin = time.monotonic()
    other = preload.InstantFile(tmp_path / "other", START_MS)
    with pytest.raises(ClockError, match="TIME shows"):
        VirtualClock(other, shifted.client())
    assert time.monotonic() < begin + clock_module.FOLLOW_SECONDS
    other.close()


def test_no_compiler_means_shifted(shifted: Server) -> None:
    """Without a C compiler a server has the fallback clock, and the reason is kept for the report."""
    clock = shifted.clock
    assert isinstance(clock, ShiftedClock)
    assert (clock.mode, clock.exact, clock.reason) == ("shifted", False, "no C compiler")


def fill(client: redis.Redis, queue: bytes) -> None:
    """Some state of a queue, its instants in the server's own time."""
    now_ms = server_ms(client)
    client.zadd(queue + b":ready:0", {b"due": 0, b"past": now_ms - 70_000, b"\xff": now_ms + 90_000.5})
    client.zadd(queue + b":ready:4", {b"soon": now_ms + 5_000})
    client.set(queue + b":ready:2", b"of a wrong type")
    client.set(queue + b":lock:short", b"token", px=60_000)
    client.set(queue + b":lock:long", b"token", px=120_000)
    client.set(queue + b":lock:forever", b"token")
    client.set(queue + b":q:group", b"not a list", px=60_000)


def scores(client: redis.Redis, queue: bytes) -> dict[bytes, float]:
    """The scores in the tiers that `fill` fills."""
    tiers = [queue + b":ready:0", queue + b":ready:4"]
    return {member: score for tier in tiers for member, score in client.zscan_iter(tier)}


def test_shift_moves_scores_and_locks(shifted: Server) -> None:
    """When time passes, positive scores and deadlines of the queue come nearer by as much, and locks end."""
    clock, client = shifted.clock, shifted.client()
    client.flushall()
    fill(client, QUEUE)
    fill(client, QUEUE_LIKE)
    before = scores(client, QUEUE)
    clock.prefixes[:] = [QUEUE]
    clock.advance(60_001)
    after = scores(client, QUEUE)
    moved = {member: before[member] - after[member] for member in before}
    assert moved == {b"due": 0, b"past": 60_001, b"\xff": 60_001, b"soon": 60_001}
    assert client.get(QUEUE + b":lock:short") is None
    assert 40_000 < client.pttl(QUEUE + b":lock:long") <= 60_000
    assert client.pttl(QUEUE + b":lock:forever") == -1
    assert 40_000 < client.pttl(QUEUE + b":q:group") <= 60_000  # no lock: not the queue's own deadline
    assert 40_000 < client.pttl(QUEUE_LIKE + b":lock:short") <= 60_000  # another queue


def test_shifted_deadline_is_not_early(shifted: Server) -> None:
    """Many short shifts move a deadline by their sum, and by no more than a millisecond each less."""
    clock, client = shifted.clock, shifted.client()
    client.flushall()
    clock.prefixes[:] = [b"q"]
    begin_ms = clock.now_ms()
    client.set(b"q:lock:g", b"token", px=100_000)
    for _ in range(50):
        clock.advance(100)
    with clock.bracket() as bracket:
        left_ms = int(client.pttl(b"q:lock:g"))
    passed_ms = 100_000 - left_ms
    assert passed_ms + 50 >= 5_000
    assert passed_ms <= bracket.after_ms - begin_ms


def test_shifted_time_runs_on(shifted: Server) -> None:
    """The fallback's time is the server's plus what was let pass, never goes back, and brackets each call."""
    clock, client = shifted.clock, shifted.client()
    seen = [clock.now_ms()]
    for _ in range(20):
        clock.advance(1000)
        with clock.bracket() as bracket:
            called_ms = server_ms(client) + clock.offset_ms
        assert bracket.before_ms <= called_ms <= bracket.after_ms
        seen += [bracket.before_ms, bracket.after_ms]
    assert seen == sorted(seen)
    assert seen[-1] - seen[0] >= 20_000
    clock.set_ms(seen[-1] + 30 * DAY_MS)
    assert clock.now_ms() >= seen[-1] + 30 * DAY_MS
    with pytest.raises(ClockError, match="cannot go back"):
        clock.set_ms(seen[0])


def test_score_too_small_to_shift(shifted: Server) -> None:
    """A positive score that would no longer be positive is refused instead of becoming first in line."""
    client = shifted.client()
    client.flushall()
    client.zadd("q:ready:1", {"group": 500})
    shifted.clock.prefixes[:] = ["q"]
    with pytest.raises(ClockError, match="holds the score 500"):
        shifted.clock.advance(500)
    shifted.clock.advance(499)
    assert client.zscore("q:ready:1", "group") == 1


def test_object_is_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The object is compiled into the user's cache, and taken from there the next time."""
    command = preload.compiler()
    if command is None:
        pytest.skip("no C compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, _ = preload.build.__wrapped__(tuple(command))
    assert first is not None
    changed = first.stat().st_mtime_ns
    assert preload.build.__wrapped__(tuple(command)) == (first, "")
    assert first.stat().st_mtime_ns == changed
    assert [path.name for path in first.parent.iterdir()] == [first.name]


@pytest.mark.parametrize("source", [preload.SOURCE, preload.FSYNC], ids=lambda path: path.name)
def test_object_compiles_without_warnings(tmp_path: Path, source: Path) -> None:
    """What is preloaded gives a compiler nothing to warn of."""
    command = preload.compiler()
    if command is None:
        pytest.skip("no C compiler")
    flags = [*preload.FLAGS, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    line = [*command, *flags, "-o", str(tmp_path / "built.so"), str(source)]
    run = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler that cannot compile is as good as none: the reason names it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "false --flag")
    assert preload.library() == (None, "false --flag does not compile clock.c: no message")
