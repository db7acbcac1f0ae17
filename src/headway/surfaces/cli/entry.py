"""The command `headway`: the nothing-to-do case first, since people meet it most, then everything else."""

import sys

from headway.version import VERSION


def main() -> int:
    """Run the command line of this process; its exit code."""
    if sys.argv[1:2] == ["run"]:
        from headway.stamp import nothing_to_do

        known = nothing_to_do(sys.argv[2:], VERSION)
        if known is not None:
            sys.stderr.write(known[1])
            sys.stdout.write(known[0])
            return 0
    from headway.surfaces.cli.main import main as full

    return full()
