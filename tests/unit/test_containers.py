"""Servers in containers. Their clocks are tested in test_clock.py, beside those of other servers."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import preload
from tests.support.clock import server_ms
from tests.support.containers import Container, docker_client
from tests.support.running import ServerError

pytestmark = pytest.mark.container


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each image given; a visible skip without."""
    if "image" in metafunc.fixturenames:
        images = metafunc.config.getoption("redis_image", default=None)
        none = pytest.param("", id="none", marks=pytest.mark.skip(reason="no image given (--redis-image)"))
        metafunc.parametrize("image", images or [none])


def exists(name: str) -> bool:
    """Whether Docker knows a container of that id."""
    with docker_client() as docker:
        return bool(docker.containers.list(all=True, filters={"id": name}))


def test_container_describes_itself(image: str) -> None:
    """Name, version, address and log are those of the server in the container, which starts empty."""
    with Container(image, ["--maxmemory", "5mb"], {"REDISQ_EXAMPLE": "42"}) as server:
        client = server.client()
        info = client.info("server")
        assert server.version in (info.get("valkey_version"), info["redis_version"])
        assert server.name.endswith("-" + ".".join(server.version.split(".")[:2]))
        assert client.dbsize() == 0
        assert client.config_get("maxmemory") == {"maxmemory": str(5 << 20)}
        assert "REDISQ_EXAMPLE=42" in server.running.attrs["Config"]["Env"]
        assert "Ready to accept connections" in server.log_tail()


def test_stopped_container_is_gone(image: str) -> None:
    """A stopped container is removed with its files; its log can still be read, and stopping again is allowed."""
    server = Container(image)
    name, folder = server.running.id, server.folder
    assert exists(name)
    server.stop()
    server.stop()
    assert not exists(name)
    assert not folder.exists()
    assert "Ready to accept connections" in server.log_tail()


def test_no_container_outlives_its_run(image: str, tmp_path: Path) -> None:
    """A run that is killed takes its container and its files with it."""
    code = f"""
import os, signal
from tests.support.containers import Container
server = Container({image!r})
print(server.running.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    line = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)}
    run = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
    assert run.stdout, run.stderr
    give_up = time.monotonic() + 20
    while exists(run.stdout.strip()) or list(tmp_path.iterdir()):
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_image_that_takes_no_clock(image: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A server that cannot load the clock is started without and has the fallback clock, with the reason."""
    (tmp_path / "no-library.so").write_text("for another processor")
    monkeypatch.setattr(preload, "library", lambda: (tmp_path / "no-library.so", ""))
    with Container(image) as server:
        assert server.clock.mode == "shifted"
        assert "does not follow a preloaded clock: TIME shows" in server.clock.reason
        assert "no-library" not in server.log_tail(1000)
        with server.clock.bracket() as bracket:
            called_ms = server_ms(server.client())
        assert bracket.before_ms <= called_ms <= bracket.after_ms


def test_server_that_ends(image: str) -> None:
    """A server that ends at its start is shown with its log."""
    with pytest.raises(ServerError, match=rf"(?s){image}: no server answers.*nonsense"):
        Container(image, ["--nonsense", "1"])


def test_image_that_is_not_there(image: str) -> None:
    """An image that is not here and cannot be pulled is named, with the ways to have it."""
    with pytest.raises(ServerError, match=r"^localhost:1/none:0: .*docker pull localhost:1/none:0.*\.ci/images"):
        Container("localhost:1/none:0")


def test_no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a Docker daemon the image is named, and what to start."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(ServerError, match=r"^some/image:1: the Docker daemon does not answer: .*dockerd"):
        Container("some/image:1")
