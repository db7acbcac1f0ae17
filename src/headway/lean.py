"""msgspec without what it loads besides for the sake of older Pythons: a tenth of a start."""

import sys


def load_msgspec() -> None:
    """Load msgspec, which goes on with `typing` where `typing_extensions` is not there; nothing here needs more.

    Not where somebody has loaded either, or another thread might just be about to.
    """
    known = sys.modules
    if "msgspec" in known or "typing_extensions" in known or len(sys._current_frames()) > 1:
        return
    known["typing_extensions"] = None  # type: ignore[assignment]  # how Python is told that a module is not there
    try:
        import msgspec  # noqa: F401  # so that it is there for all others
    finally:
        del known["typing_extensions"]
