"""Run the benchmarks: `python -m benchmarks [NAME…]`. A table on stdout, and all figures in build/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import aging, appending, histories, making, peers, pipelines, plans, resting, starting, workspaces
from benchmarks.measure import Benchmark, Row, Setting, table

BENCHMARKS: dict[str, Benchmark] = {
    "append": appending.append,
    "size": appending.size,
    "load": plans.load,
    "fold": plans.folding,
    "graph": plans.graph,
    "history": histories.history,
    "workspace": workspaces.workspace,
    "start": starting.start,
    "noop": resting.noop,
    "growth": resting.growth,
    "change": making.one_change,
    "cold": making.cold,
    "step": making.step,
    "state": making.state,
    "pipelines": pipelines.pipelines,
    "age": aging.aging,
}
QUICK = 0.1
"""What --quick multiplies every count by."""
BUILD = Path(__file__).parents[1] / "build"


def main(argv: list[str] | None = None) -> int:
    """Measure what was asked for; 0 whatever the figures are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").strip())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones (default: all): {', '.join(BENCHMARKS)}")
    parser.add_argument("--size", type=float, help="multiply every count by this (default: 1)")
    parser.add_argument("--repeat", type=int, help="measure this often and take the median (default: 5)")
    parser.add_argument("--quick", action="store_true", help=f"--size {QUICK} --repeat 3: an impression, in a minute")
    parser.add_argument("--large", action="store_true", help="100,000 artifacts, and 100 changes, too: minutes more")
    parser.add_argument("--no-peers", action="store_true", help="install and measure no other tools")
    parser.add_argument(
        "--folder", type=Path, default=BUILD, help="where to write: its disk is the one that is measured"
    )
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    size = args.size if args.size is not None else QUICK if args.quick else 1.0
    repeat = args.repeat if args.repeat is not None else 3 if args.quick else 5
    others = None if args.no_peers else BUILD / "peers"
    args.folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=args.folder))
    rows: list[Row] = []
    try:
        for name in args.names or BENCHMARKS:
            begin = time.monotonic()
            folder = scratch / name
            folder.mkdir()
            rows += BENCHMARKS[name](Setting(folder, size, repeat, others, args.large))
            print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    finally:  # not sooner: where files were deleted a moment ago, some file systems take longer to create others
        shutil.rmtree(scratch)
    print(table(rows))
    result = {"python": platform.python_version(), "cpus": os.cpu_count(), "size": size, "repeat": repeat}
    there = {name: peers.find(name, others) for name in ("make", "ninja", "doit")}
    versions = {name: peers.version(command) for name, command in there.items() if command}
    found = {**result, "peers": versions, "rows": [row._asdict() for row in rows]}
    (args.folder / "bench.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
