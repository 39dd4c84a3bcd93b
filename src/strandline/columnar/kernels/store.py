"""Where machine code is kept on this machine: one file for each module of kernels and all that its code depends on.

Always true: what `fetch` gives is whole, and is a file of this user that nobody else can write to, in such a directory; processes
that find nothing at the same time make it once, and the others wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

Code = list[tuple[str, bytes]]
"""Symbol and object code of each kernel."""

COMPILING: Final = "Compiling Strandline's record kernels for this machine, once; this takes some seconds"
_WAIT_S_MAX: Final = 60.0
_WAIT_STEP_S: Final = 0.05
_DIGEST_BYTES: Final = 32
_SIZE_BYTES: Final = 4


def fetch(name: str, make: Callable[[], Code], tell: Callable[[str], None]) -> Code:
    """The code of this name, made first (and `tell` gets a line) if it is not there yet."""
    directory = find_directory()
    if directory is None:
        tell(f"{COMPILING} in every process, because no cache directory can be written to")
        return make()
    file = directory / f"{name}.kernels"
    code = read(file)
    if code is None:
        tell(COMPILING)
        with alone(directory):
            code = read(file)
            if code is None:
                code = make()
                write(file, code)
    return code


def find_directory() -> Path | None:
    """The user's cache directory, else one of their own among the temporary ones."""
    given = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for directory in (Path(given) / "strandline", Path(tempfile.gettempdir()) / f"strandline-{os.getuid()}"):
        if not directory.is_absolute():  # the home directory is not known
            continue
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = directory.lstat()
        except OSError:
            continue
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
        if is_ours and os.access(directory, os.W_OK):
            return directory
    return None


def read(file: Path) -> Code | None:
    """None if it is not there, not in full, or not ours alone."""
    content = read_own(file)
    if content is None:
        return None
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    parts = []
    while body:
        size, body = int.from_bytes(body[:_SIZE_BYTES]), body[_SIZE_BYTES:]
        part, body = body[:size], body[size:]
        parts.append(part)
    return [(symbol.decode(), content) for symbol, content in zip(parts[::2], parts[1::2], strict=True)]


def read_own(file: Path) -> bytes | None:
    """What will be run: None unless it is a file that nobody but this user can write to. What is looked at is what is read."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            return None
        with open(handle, "rb", closefd=False) as opened:
            return opened.read()
    except OSError:
        return None
    finally:
        os.close(handle)


def write(file: Path, code: Code) -> None:
    """Whole or not at all. Where it cannot be kept, it is made again next time."""
    parts = [part for symbol, content in code for part in (symbol.encode(), content)]
    body = b"".join(len(part).to_bytes(_SIZE_BYTES) + part for part in parts)
    write_whole(file, hashlib.sha256(body).digest() + body)


def write_whole(file: Path, content: bytes) -> None:
    """Under its name only once it is on the device: a crash must not leave the name with nothing behind it."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(handle)
        temporary.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """While others wait; without a lock, or after waiting long enough, the same work is done twice, which does no harm."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _WAIT_S_MAX
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(_WAIT_STEP_S)
                    continue
            except OSError:  # no such locks here: NFS has none for what is open for reading only
                pass
            break
        yield
    finally:
        os.close(handle)
