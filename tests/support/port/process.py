"""The adapter's process: one line out, one line in, within a time and a size, whatever it does instead."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any

from model.operation import Json

SUITE = Path(__file__).parents[3]
MAX_LINE = 1 << 24  # bytes of an answer
CHUNK = 1 << 16
STDERR_LINES = 8


class PortError(Exception):
    """The adapter did not answer as the protocol has it. ``kind`` is one of KINDS, the text says what came."""

    KINDS = ("start", "hang", "crash", "garbage", "oversized", "protocol")

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


class Process:
    """One run of the adapter. ``command`` is split as a shell would and runs in the caller's folder."""

    def __init__(self, command: str, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._buffer = bytearray()
        self._asked = 0
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(SUITE)]))  # for `python -m model`
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # so that it can be killed with all that it started
            )
        except (OSError, ValueError, IndexError) as error:
            self._stderr.close()
            raise PortError("start", f"{command!r} cannot be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        for pipe in (self._in, self._out):
            os.set_blocking(pipe.fileno(), False)

    def ask(self, request: Json, timeout_s: float | None = None) -> Json:
        """Sends a request with the next id and returns the answer to it. Raises PortError for anything else."""
        self._asked += 1
        request = {"id": self._asked, **request}
        line = self._exchange(json.dumps(request).encode() + b"\n", timeout_s or self.timeout_s)
        answer = parse(line)
        if (echoed := answer.get("id")) != self._asked or isinstance(echoed, bool):  # True == 1 in Python
            raise PortError("protocol", f"the answer to id {self._asked} has the id {echoed!r:.80}")
        return answer

    def _exchange(self, out: bytes, timeout_s: float) -> bytes:
        until = time.monotonic() + timeout_s
        if self._buffer:
            raise PortError("garbage", f"a line that nobody asked for: {bytes(self._buffer[:200])!r}")
        waiting = memoryview(out)
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            selector.register(self._in, selectors.EVENT_WRITE)
            while True:
                if not (ready := selector.select(max(0.0, until - time.monotonic()))):
                    raise PortError("hang", f"no answer within {timeout_s:g} s")
                for key, _ in ready:
                    if key.fileobj is self._in:
                        waiting = waiting[self._write(waiting) :]
                        if not waiting:
                            selector.unregister(self._in)
                    elif line := self._read():
                        return line

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._in.fileno(), data[:CHUNK])
        except BlockingIOError:
            return 0
        except OSError:
            raise self._ended() from None

    def _read(self) -> bytes | None:
        data = os.read(self._out.fileno(), CHUNK)
        if not data:
            raise self._ended()
        start = len(self._buffer)
        self._buffer += data
        end = self._buffer.find(b"\n", start)
        if end < 0:
            if len(self._buffer) > MAX_LINE:
                raise PortError("oversized", f"a line of more than {MAX_LINE} bytes: {bytes(self._buffer[:80])!r}…")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _ended(self) -> PortError:
        try:
            code: Any = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return PortError("crash", "the adapter closed its standard output and still runs")
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return PortError("crash", f"the adapter {how} instead of answering")

    def stderr_tail(self) -> str:
        """The last lines it wrote to standard error."""
        if self._stderr.closed:
            return ""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - CHUNK))
        return "\n".join(self._stderr.read().decode(errors="replace").splitlines()[-STDERR_LINES:])

    def end(self) -> None:
        """Closes its input, waits a moment, and kills it with all its children if it stays."""
        for pipe in (self._in, self._out):
            pipe.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.kill()
        self._stderr.close()

    def kill(self) -> None:
        """Kills it with all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def parse(line: bytes) -> Json:
    """One line as a JSON object. Raises PortError saying what is wrong with it."""
    try:
        answer = json.loads(line.decode(), parse_constant=_no_constant)
        if b"\\ud" in line.lower():  # half a pair would go into the reports, and no file can hold it
            json.dumps(answer, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise PortError("garbage", f"a line with half a surrogate pair, which is no text: {line[:200]!r}") from None
    except UnicodeDecodeError as error:
        raise PortError("garbage", f"a line that is not UTF-8 at byte {error.start}: {line[:200]!r}") from None
    except RecursionError:
        raise PortError("garbage", f"a line that is nested too deeply: {line[:80]!r}…") from None
    except ValueError as error:  # JSONDecodeError, a constant, or an integer of too many digits
        raise PortError("garbage", f"a line that is not JSON ({error}): {line[:200]!r}") from None
    if not isinstance(answer, dict):
        raise PortError("garbage", f"a line that is no JSON object: {line[:200]!r}")
    return answer


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
