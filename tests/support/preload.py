"""The object that gives a server a virtual wall clock: building it, and the eight bytes it reads.

`clock.c` says what it answers. It is compiled at first use and kept in the user's cache; where that cannot be done the
reason is answered instead, and tests fall back to `clock.ShiftedClock`.
"""

import hashlib
import mmap
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

FILE_VARIABLE = "REDISQ_CLOCK_FILE"
"""The environment variable that tells the preloaded object its memory file."""

SOURCE = Path(__file__).with_name("clock.c")
FLAGS = ("-shared", "-fPIC", "-O2", "-nostdlib")


class InstantFile:
    """The memory file of one server: int64 microseconds since the epoch, or 0 for the real clock."""

    def __init__(self, path: Path, ms: int) -> None:
        """Make the file, with the instant `ms` in it (milliseconds since the epoch)."""
        self.path = path
        path.write_bytes(bytes(8))
        path.chmod(0o644)  # a server in a container runs as another user
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8)
        self._cell = memoryview(self._memory).cast("q")  # one aligned store, never half an instant
        self.write(ms)

    def write(self, ms: int) -> None:
        """Set the instant, in milliseconds since the epoch; 0 gives the real clock back."""
        self._cell[0] = ms * 1000

    def close(self) -> None:
        """Unmap the file. May be called again."""
        self._cell.release()
        self._memory.close()


def compiler() -> list[str] | None:
    """The command of the C compiler: $CC, else cc, gcc or clang on PATH; None if there is none."""
    for command in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return words
    return None


def library() -> tuple[Path | None, str]:
    """The shared object to preload, or None and the reason why there is none."""
    if not sys.platform.startswith("linux"):
        return None, f"no clock can be preloaded on {sys.platform}"
    command = compiler()
    if command is None:
        return None, "no C compiler"
    return build(tuple(command))


@cache
def build(command: tuple[str, ...]) -> tuple[Path | None, str]:
    """Compile clock.c with `command`, unless that was done before; several processes may do so at once."""
    version = subprocess.run([*command, "--version"], capture_output=True, check=False).stdout
    parts = [SOURCE.read_bytes(), shlex.join([*command, *FLAGS]).encode(), version, os.uname().machine.encode()]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]
    target = cache_folder() / f"clock-{key}.so"
    if target.exists():
        return target, ""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / "clock.so"
        line = [*command, *FLAGS, "-o", str(built), str(SOURCE)]
        run = subprocess.run(line, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            first = (run.stderr.strip().splitlines() or ["no message"])[0]
            return None, f"{shlex.join(command)} does not compile {SOURCE.name}: {first}"
        built.chmod(0o755)
        built.replace(target)
    return target, ""


def cache_folder() -> Path:
    """Where built objects are kept: the user's cache, or a new temporary folder where that cannot be written."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redisq"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="redisq-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="redisq-"))
