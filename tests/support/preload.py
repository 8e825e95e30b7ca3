"""Objects that a server preloads: building them, and the sixteen bytes that tell one of them the time.

`clock.c` gives it a virtual wall clock, `fsync.c` writes down what is on its disk. Each is compiled at first use and
kept in the user's cache; where that cannot be done the reason is answered instead, and tests fall back to
`clock.ShiftedClock`.
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
FSYNC = Path(__file__).with_name("fsync.c")
FSYNC_VARIABLE = "REDISQ_FSYNC_FILE"
"""The environment variable that tells it where to write."""
FLAGS = ("-shared", "-fPIC", "-O2", "-nostdlib")


class InstantFile:
    """The memory file of one server: int64 microseconds since the epoch, or 0; and how far it is then ahead, int64."""

    def __init__(self, path: Path, ms: int) -> None:
        """Make the file, with the instant `ms` in it (milliseconds since the epoch)."""
        self.path = path
        path.write_bytes(bytes(16))
        path.chmod(0o644)  # a server in a container runs as another user
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 16)
        self._cell = memoryview(self._memory).cast("q")  # one aligned store, never half an instant
        self.write(ms)

    def write(self, ms: int) -> None:
        """Set the instant, in milliseconds since the epoch; with 0 the clock runs."""
        self._cell[0] = ms * 1000

    def run_ahead(self, ms: int) -> None:
        """How far a clock that runs is ahead of the machine's, in milliseconds; negative: behind."""
        self._cell[1] = ms * 1000

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


def library(source: Path = SOURCE) -> tuple[Path | None, str]:
    """The shared object to preload, or None and the reason why there is none."""
    if not sys.platform.startswith("linux"):
        return None, f"nothing can be preloaded on {sys.platform}"
    command = compiler()
    if command is None:
        return None, "no C compiler"
    return build(tuple(command), source)


@cache
def build(command: tuple[str, ...], source: Path = SOURCE) -> tuple[Path | None, str]:
    """Compile `source` with `command`, unless that was done before; several processes may do so at once."""
    version = subprocess.run([*command, "--version"], capture_output=True, check=False).stdout
    parts = [source.read_bytes(), shlex.join([*command, *FLAGS]).encode(), version, os.uname().machine.encode()]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]
    target = cache_folder() / f"{source.stem}-{key}.so"
    if target.exists():
        return target, ""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / target.name
        line = [*command, *FLAGS, "-o", str(built), str(source)]
        run = subprocess.run(line, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            first = (run.stderr.strip().splitlines() or ["no message"])[0]
            return None, f"{shlex.join(command)} does not compile {source.name}: {first}"
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
