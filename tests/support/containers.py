"""Real servers in containers, through testcontainers: any image of Redis or Valkey, on a loopback port.

    with Container("redis:8.0") as server:
        server.clock.advance(500)

The interface is that of `servers.Server`. The virtual clock is mounted and preloaded; an image that does not take it
(another libc, another processor) is started again without, and has the fallback clock.
"""

import atexit
import contextlib
import importlib
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import redis

from tests.support import preload
from tests.support.clock import START_MS
from tests.support.running import DEBUG_ARGS, START_SECONDS, BaseServer, Guard, ServerError

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

PORT = 6379
LIBRARY = "/redisq/clock.so"
INSTANT = "/redisq/clock"
OWN_ARGS = (
    *("--port", str(PORT), "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--appendonly", "no"),
    *("--jemalloc-bg-thread", "no"),  # as in servers.py
)
REMOVE = "import docker, sys; docker.from_env().containers.get(sys.argv[1]).remove(force=True, v=True)"


class Container(BaseServer):
    """A server in a container of its own, with no data from before; `pid` is its process id on the host."""

    def __init__(self, image: str, args: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        """Start `image`, with `args` after the command of the image and our own, and `env` in its environment."""
        super().__init__()
        self.image = image
        self.args = list(args)
        self.env = dict(env or {})
        self.folder = Path(tempfile.mkdtemp(prefix="redisq-container-"))
        self._container: DockerContainer | None = None
        self.running: Any = None  # Docker's own object, once there is one
        self._guard: Guard | None = None
        self._last_log = ""
        self._debug_args: tuple[str, ...] = DEBUG_ARGS
        atexit.register(self.stop)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of what the container printed; of the last container, once it is removed."""
        if self.running is not None:
            log: bytes = self.running.logs(tail=1000)
            self._last_log = log.decode(errors="replace")
        return "\n".join(self._last_log.splitlines()[-lines:])

    def stop(self) -> None:
        """Remove the container and the files mounted in it. May be called again."""
        atexit.unregister(self.stop)
        self._close_clients()
        self._remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        library, reason = preload.library()
        if library is not None:
            file = preload.InstantFile(self.folder / "clock", START_MS)
            try:
                self._launch(library)
            except ServerError as error:
                reason = f"{self.image} does not start with a preloaded clock: {error}"
            else:
                self._use_clock(file, "")
                if self.clock.exact:
                    return
                reason = self.clock.reason
            file.close()
            self._remove()
        self._launch(None)
        self._use_clock(None, reason)

    def _launch(self, library: Path | None) -> None:
        """Start a container and wait until the server in it answers."""
        try:
            from testcontainers.core.config import testcontainers_config
            from testcontainers.core.container import DockerContainer
        except ImportError as error:
            raise ServerError(f"{self.image}: containers need the package testcontainers: {error}") from error

        testcontainers_config.ryuk_disabled = True  # it is one more image to have; the guard does its work
        with self._daemon_errors():
            check_daemon()
            self._container = container = DockerContainer(self.image)
            command = self._command(container.get_docker_client().client)
            container.with_command([*command, *OWN_ARGS, *self._debug_args, *self.args]).with_envs(**self.env)
            cast("dict[str, Any]", container.ports)[f"{PORT}/tcp"] = ("127.0.0.1", None)
            if library is not None:
                container.with_volume_mapping(library, LIBRARY).with_volume_mapping(self.folder / "clock", INSTANT)
                container.with_envs(LD_PRELOAD=LIBRARY, **{preload.FILE_VARIABLE: INSTANT})
            self.running = container.start().get_wrapped_container()
            self._guard = Guard([sys.executable, "-c", REMOVE, self.running.id], self.folder)
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up and self._is_up():
            with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
                self.identify()
                return
            time.sleep(0.005)
        if self._debug_args and self._debug_args[0].strip("-") in self.log_tail():
            self._debug_args = ()
            self._remove()
            self._launch(library)
            return
        raise ServerError(f"{self.image}: no server answers (container {self.running.status})\n{self.log_tail()}")

    def _is_up(self) -> bool:
        """Whether the container runs; where it is reached is known from then on."""
        self.running.reload()
        state, ports = self.running.attrs["State"], self.running.attrs["NetworkSettings"]["Ports"]
        if state["Running"]:
            self.pid = int(state["Pid"])
            self.port = int(ports[f"{PORT}/tcp"][0]["HostPort"])
            self.url = f"redis://127.0.0.1:{self.port}/0"
        return bool(state["Running"])

    def _command(self, docker: Any) -> list[str]:
        """The command of the image, pulled if it is not here."""
        errors = docker_errors()
        try:
            try:
                image = docker.images.get(self.image)
            except errors.ImageNotFound:
                image = docker.images.pull(self.image)
        except errors.APIError as error:
            raise ServerError(
                f"{self.image}: this image is not here and cannot be pulled: {error.explanation or error}. "
                f"Pull it where a registry can be reached (docker pull {self.image}), or build it (.ci/images)."
            ) from error
        return list(image.attrs["Config"].get("Cmd") or [])

    @contextlib.contextmanager
    def _daemon_errors(self) -> Iterator[None]:
        """Turn what Docker says into what to do."""
        errors = docker_errors()
        try:
            yield
        except errors.APIError as error:
            raise ServerError(f"{self.image}: Docker refuses: {error.explanation or error}") from error
        except (errors.DockerException, OSError) as error:
            hint = "Start it (systemctl start docker, or dockerd &) and see that this user may use its socket."
            raise ServerError(f"{self.image}: the Docker daemon does not answer: {error}. {hint}") from error

    def _remove(self) -> None:
        """Keep the log, remove the container."""
        if self._guard is not None:
            self._guard.dismiss()
        if self._container is not None:
            self.log_tail()
            self._container.stop()
            self._container = self.running = None


def docker_client() -> contextlib.closing[Any]:
    """A client of the Docker daemon, for a `with`."""
    return contextlib.closing(importlib.import_module("docker").from_env())


def docker_errors() -> Any:
    """The errors of Docker's own client, which carries no types."""
    return importlib.import_module("docker.errors")


def check_daemon() -> None:
    """An `OSError` if nothing listens at the daemon's socket: Docker's client would leave its own end open."""
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(host.removeprefix("unix://"))
