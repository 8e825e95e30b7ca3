"""Pythons of this machine, and empty environments made with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLDEST = 11  # Python 3.11, as pyproject.toml says
CLEARED = ("PYTHONPATH", "PYTHONHOME", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "VIRTUAL_ENV")


def run(*line: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder; unless told otherwise it must succeed, and what it said is shown if it does not."""
    env = {name: value for name, value in os.environ.items() if name not in CLEARED and "COV" not in name}
    words = [str(word) for word in line]
    done = subprocess.run(
        words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, f"{' '.join(words)}: exit code {done.returncode}\n{said(done)}"
    return done


def said(done: subprocess.CompletedProcess[str]) -> str:
    """All that a command printed."""
    return done.stdout + done.stderr


class Environment:
    """An environment with nothing in it but pip."""

    def __init__(self, python: str, folder: Path) -> None:
        """Makes one for the interpreter; `elsewhere` is an empty folder to run commands in."""
        run(python, "-m", "venv", folder / "venv", cwd=folder)
        self.bin = folder / "venv" / "bin"
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()

    def install(self, *what: str | Path) -> None:
        """Installs packages."""
        self.run("python", "-m", "pip", "install", "-q", *what)

    def run(self, command: str, *args: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command of the environment in an empty folder."""
        return run(self.bin / command, *args, cwd=self.elsewhere, check=check)

    def files(self) -> set[str]:
        """The files in its site-packages."""
        site = Path(self.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
        return {str(path.relative_to(site)) for path in site.rglob("*")}


def this_python() -> str:
    """The interpreter that this one's environment was made from."""
    return str(getattr(sys, "_base_executable", None) or sys.executable)


def every_python() -> dict[str, str]:
    """Each installed Python that is supported, by version (`3.12`): on PATH, or where pyenv keeps it."""
    found: dict[str, str] = {}
    for python in candidates():
        line = [python, "-Ic", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(line, capture_output=True, text=True, check=False)  # a link of pyenv may lead nowhere
        if answer.returncode == 0:
            found.setdefault(answer.stdout.strip(), python)
    return found


def candidates() -> Iterator[str]:
    """Interpreters that may be there, the present one first."""
    yield this_python()
    for minor in range(OLDEST, OLDEST + 10):
        name = f"python3.{minor}"
        if path := shutil.which(name):
            yield path
        root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
        yield from (str(path) for path in sorted(root.glob(f"versions/*/bin/{name}")))


if __name__ == "__main__":  # for .ci/run: each as `3.12 /usr/bin/python3.12`
    for version, python in every_python().items():
        print(version, python)
