"""Free space: delete blobs that nothing needs any more. Current outputs and what people wrote are always kept."""

from __future__ import annotations

import argparse
from typing import Any

from headway.engine.gc import KEEP_DAYS
from headway.surfaces.cli.options import add_json, add_project, at_least, plan_of, project_of, same_plan
from headway.surfaces.cli.screen import Screen
from headway.work import Work


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", "-n", action="store_true", help="say what would be freed")
    parser.add_argument(
        "--keep-days",
        type=at_least(0, float),
        default=KEEP_DAYS,
        metavar="N",
        help="keep older attempts this long (default: 30)",
    )
    parser.add_argument("--outputs", action="store_true", help="also delete files that no plan makes any more")
    add_project(parser)
    parser.add_argument("--plan", metavar="FILE", help="of such files, only those of this plan (default: of any)")
    parser.add_argument("--plan-id", metavar="ID", help="the same of a saved plan by its id")
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work = Work(project_of(args, screen))
    found = work.left_files(plan_of(args, work.project) if args.plan or args.plan_id else "")
    left, edited = [file.path for file in found if not file.edited], [file.path for file in found if file.edited]
    if args.outputs and not args.dry_run:
        work.remove_left_files(left)
    if args.outputs:
        for path in left:
            screen.say(f"{'Would delete' if args.dry_run else 'Deleted'} {path}")
        for path in edited:
            screen.say(f"{'Would keep' if args.dry_run else 'Kept'} {path}: it is not as it was made")
    freed = work.free_space(keep_days=args.keep_days, dry_run=args.dry_run)
    document = {"kept": freed.kept, "freed": freed.freed, "bytes": freed.bytes, "dry_run": args.dry_run}
    screen.answer({**document, "outputs": left, "edited": edited})
    would = "Would free" if args.dry_run else "Freed"
    noun = "blob" if freed.freed == 1 else "blobs"
    screen.say(f"{would} {freed.freed} {noun}, {_size(freed.bytes)}; {freed.kept} needed.")
    if left and not args.outputs:
        what = "1 file belongs" if len(left) == 1 else f"{len(left)} files belong"
        screen.say(f"{what} to nothing any more. Next: headway gc --outputs --dry-run{same_plan(args)} lists them")
    return 0


def _size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024  # type: ignore[assignment]  # from here on it is a fraction
    return ""
