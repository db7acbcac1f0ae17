"""Run the benchmarks: `python -m benchmarks [NAME…]`. A table on stdout, and all figures in build/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import appending, plans, starting
from benchmarks.measure import Benchmark, Row, Setting, table

BENCHMARKS: dict[str, Benchmark] = {
    "append": appending.append,
    "size": appending.size,
    "load": plans.load,
    "fold": plans.folding,
    "graph": plans.graph,
    "start": starting.start,
}
BUILD = Path(__file__).parents[1] / "build"


def main(argv: list[str] | None = None) -> int:
    """Measure what was asked for; 0 whatever the figures are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").strip())
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones (default: all): {', '.join(BENCHMARKS)}")
    parser.add_argument("--size", type=float, default=1.0, help="multiply every count by this (default: 1)")
    parser.add_argument("--repeat", type=int, default=5, help="measure this often and take the median (default: 5)")
    parser.add_argument(
        "--folder", type=Path, default=BUILD, help="where to write: its disk is the one that is measured"
    )
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=args.folder))
    rows: list[Row] = []
    try:
        for name in args.names or BENCHMARKS:
            print(f"… {name}", file=sys.stderr, flush=True)
            rows += BENCHMARKS[name](Setting(scratch, args.size, args.repeat))
    finally:
        shutil.rmtree(scratch)
    print(table(rows))
    result = {"python": platform.python_version(), "cpus": os.cpu_count(), "size": args.size, "repeat": args.repeat}
    found = {**result, "rows": [row._asdict() for row in rows]}
    (args.folder / "bench.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
