"""The command `headway`: the nothing-to-do case first, since people meet it most, then everything else."""

import os
import sys

from headway.version import VERSION


def main() -> int:
    """Run the command line of this process; its exit code."""
    try:
        return _run()
    except KeyboardInterrupt:  # while everything else is being imported: nobody is there yet who could say it
        sys.stderr.write("Interrupted. Nothing is lost.\n")
        return 130


def _run() -> int:
    if sys.argv[1:2] == ["run"]:
        from headway.stamp import nothing_to_do

        known = nothing_to_do(sys.argv[2:], VERSION)
        if known is not None:
            _leave(*known)
    import gc

    from headway.calm import look_rarely
    from headway.surfaces.cli.main import main as full

    look_rarely()
    code = full()
    gc.freeze()  # on the way out, what is left of a plan is let go of without looking through it for garbage
    return code


def _leave(out: str, err: str) -> None:
    """Say it and be gone: there is nothing to tidy up, and tidying takes as long as looking did."""
    try:
        for stream, text in ((sys.stderr, err), (sys.stdout, out)):
            if stream is None:  # closed by the caller
                continue
            data = text.encode(stream.encoding, "backslashreplace")
            while data:
                data = data[os.write(stream.fileno(), data) :]
    except BrokenPipeError:  # nobody reads it any more, which is no error
        os._exit(0)
    except OSError:  # it could not be said: whoever looks at everything says why
        return
    os._exit(0)
