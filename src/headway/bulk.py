"""Many small files at once: looked at, written, or written over, in one call.

A file system takes longer for a small file than the rest of the system for its bytes, and Python longer to ask for each
of its steps. `_bulk.c` takes these steps for many files without holding the interpreter, so that others use it
meanwhile. Where it could not be built, the same is done here, file by file: it takes longer, and what somebody puts
there in the very moment in which a file is replaced goes unnoticed.
"""

import errno
import os
import stat
import time

TYPE_CHECKING = False  # the nothing-to-do case imports this, and nothing that it does not need
if TYPE_CHECKING:
    from collections.abc import Sequence

Known = tuple[int, int, int, int]
"""What tells that a file was not touched: its size, its times of change in ns, and its inode."""

Order = tuple[str, bytes, int, str | None, Known | None]
"""A path, what is to be there, and the file's mode. Where it is to take the place of another file: what it is called
until then, and what that other has to be; whatever it is, if nobody knows."""

Answer = tuple[int, Known, int]
"""What became of an order: 0, an errno or OTHER; the file as it was left, and the time that it was given."""

Over = tuple[str, bytes, int]
"""A path, what is to be there, and with how many of these bytes the file that stands there has to begin."""

OTHER = -1
"""Something else stands there than was expected; it still does."""

NOTHING: Known = (0, 0, 0, 0)

VERSION = 3
"""Of what `_bulk.c` is asked and answers."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_THERE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def changed_one_by_one(prefix: str, paths: list[str], known: "Sequence[Known]") -> list[int]:
    """The numbers of those paths, below a folder with its slash, at which something else stands than is known."""
    found = []
    for number, (path, was) in enumerate(zip(paths, known, strict=True)):
        try:
            is_same = known_of(os.lstat(prefix + path)) == was
        except OSError:
            is_same = False
        if not is_same:
            found.append(number)
    return found


def is_clear_by_steps(folder: str, path: str) -> bool:
    """Whether a folder is there, and no link to one, and nothing stands at a path in it.

    This is asked of one at a time, and right before it is made, so it has to be quick.
    """
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return False
        os.lstat(path)
    except FileNotFoundError as error:
        return bool(error.filename == path)
    except OSError:
        return False
    return False


def write_one_by_one(orders: list[Order]) -> list[Answer]:
    """Carry out orders: each file is new, has all its bytes and its time before it takes anybody's place, and is gone
    if it cannot.
    """
    return [_carried_out(*order) for order in orders]


def _carried_out(path: str, data: bytes, mode: int, aside: str | None, other: Known | None) -> Answer:
    now, left = time.time_ns(), NOTHING
    try:
        fd = os.open(aside or path, _NEW, mode)
    except OSError as error:
        return _errno(error), NOTHING, now
    problem = 0
    try:
        _put(fd, data)
        os.utime(fd, ns=(now, now))
        if aside and other is not None and known_of(os.lstat(path)) != other:
            problem = OTHER
        elif aside:
            os.rename(aside, path)
        left = known_of(os.fstat(fd))
    except OSError as error:
        problem = _errno(error)
    try:
        os.close(fd)
    except OSError as error:  # over a network, it is only now that there is no room
        problem = problem or _errno(error)
    if problem:
        _remove(aside or path)
        left = NOTHING
    return problem, left, now


def write_over_one_by_one(orders: "list[Over]") -> list[int]:
    """Write files over where they stand: 0, or an errno or OTHER for one that is not there or is not what it has to be,
    that is no regular file or that somebody has under another name.

    A file system takes many times as long to create a file and delete another. But a reader may see half of it, and so
    may everybody after a kill or a power cut: only for what is written again then.
    """
    if not all(0 <= same <= len(data) for _, data, same in orders):
        raise ValueError("a file begins with some of its bytes")
    return [_written_over(*order) for order in orders]


def _written_over(path: str, data: bytes, same: int) -> int:
    try:
        fd = os.open(path, _THERE)
    except OSError as error:
        return _errno(error)
    problem = 0
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or os.pread(fd, same, 0) != data[:same]:
            problem = OTHER
        else:
            _put(fd, data)
            if found.st_size > len(data):
                os.ftruncate(fd, len(data))
    except OSError as error:
        problem = _errno(error)
    try:
        os.close(fd)
    except OSError as error:
        problem = problem or _errno(error)
    return problem


def _put(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        count = os.write(fd, view)
        if not count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[count:]


def _errno(error: OSError) -> int:
    return error.errno or errno.EIO


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def known_of(found: os.stat_result) -> Known:
    """What tells whether a file will be touched after this."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


changed, is_clear, write, write_over = changed_one_by_one, is_clear_by_steps, write_one_by_one, write_over_one_by_one
try:
    from headway._bulk import VERSION as _VERSION
    from headway._bulk import changed as _changed
    from headway._bulk import is_clear as _is_clear
    from headway._bulk import write as _write
    from headway._bulk import write_over as _write_over
except ImportError:
    pass
else:
    if _VERSION == VERSION:  # it may have been built before this was changed
        changed, is_clear, write, write_over = _changed, _is_clear, _write, _write_over
