"""Free space: delete blobs that nothing needs any more. Current outputs and what people wrote are always kept."""

from __future__ import annotations

import argparse
from typing import Any

from headway.engine.gc import KEEP_DAYS
from headway.surfaces.cli.options import add_json, add_project, at_least, project_of
from headway.surfaces.cli.screen import Screen
from headway.work import Work


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", "-n", action="store_true", help="say what would be freed")
    parser.add_argument(
        "--keep-days",
        type=at_least(0, float),
        default=KEEP_DAYS,
        metavar="N",
        help="keep older outputs this long (default: 30)",
    )
    add_project(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    swept = Work(project_of(args)).sweep(keep_days=args.keep_days, dry_run=args.dry_run)
    screen.answer({"kept": swept.kept, "freed": swept.freed, "bytes": swept.bytes, "dry_run": args.dry_run})
    would = "Would free" if args.dry_run else "Freed"
    noun = "blob" if swept.freed == 1 else "blobs"
    screen.say(f"{would} {swept.freed} {noun}, {_size(swept.bytes)}; {swept.kept} needed.")
    return 0


def _size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024  # type: ignore[assignment]  # from here on it is a fraction
    return ""
