"""What an attempt left and printed: its outputs, its stdout and stderr, and how it ended. Of the newest, or --at SEQ.

headway show report             the newest attempt; on a terminal, of a long text its beginning
headway show report --output    the bytes of its output, and nothing else
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from headway.core.ids import as_word
from headway.core.state import Output
from headway.errors import NotFound
from headway.projections.story import moment, seconds
from headway.reading import Piece, Reading, Shown
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_at, add_json, add_plan, project_of, same_plan
from headway.surfaces.cli.screen import Screen

PRINTED = ("stdout", "stderr", "prompt")
"""Of these no size is recorded, only their bytes."""

FILES = 50
"""So many files of a folder are listed."""

LONGEST = 20_000
"""So many characters of a text are shown to somebody who reads along."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--output", action="store_true", help="only the bytes of its (first) output")
    only.add_argument("--prompt", action="store_true", help="only the prompt that its templates came to")
    only.add_argument("--response", action="store_true", help="only what was answered to the prompt")
    only.add_argument("--stdout", action="store_true", help="only what it printed to stdout")
    only.add_argument("--stderr", action="store_true", help="only what it printed to stderr")
    add_plan(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    found = Reading(work).show(meant, args.artifact, at=args.at)
    screen.answer({"plan_id": meant.plan_id, **found.to_dict()})
    if screen.as_json:
        return 0
    wanted = next((name for name in ("output", "prompt", "response", "stdout", "stderr") if getattr(args, name)), "")
    if wanted:
        data = _bytes(found, wanted)
        screen.raw(data or b"")
        if data is None:
            screen.note(f"{_nothing(found, wanted, same_plan(args))}.")
    else:
        _say(found, screen, same_plan(args))
    return 0


def _bytes(found: Shown, name: str) -> bytes | None:
    """The bytes of one of its pieces; None, if it has none such."""
    pieces = {
        "output": found.outputs[0] if found.outputs else None,
        "prompt": found.prompt,
        "response": found.stdout,
        "stdout": found.stdout,
        "stderr": found.stderr,
    }
    piece = pieces[name]
    if piece is None:
        return None
    if piece.kind == "tree" or piece.data is None:
        artifact, seq = as_word(found.attempt.artifact), found.attempt.seq
        hint = f"headway show {artifact} lists the attempts"
        if piece.files:
            hint = f"headway show {artifact} --at {seq} lists its files"
        elif name == "output":
            hint = f"headway restore {artifact} --at {seq} brings it back, if it is stored"
        raise NotFound(
            f"The {name} of {found.attempt.artifact} cannot be shown",
            facts={"path": piece.path, "reason": piece.what},
            hint=hint,
            code="show.bytes",
        )
    return piece.data


def _nothing(found: Shown, name: str, where: str) -> str:
    """That there is nothing of the kind, and where to look instead."""
    artifact, attempt = found.attempt.artifact, f"Event {found.attempt.seq} of {found.attempt.artifact}"
    if name in ("output", "prompt"):
        return f"{attempt} left no {name}"
    printed = "stderr" if name == "stderr" else "stdout"
    there = f": headway show {as_word(artifact)} --output{where} is what it wrote" if found.outputs else ""
    return f"{attempt} printed nothing to {printed}{there if name == 'response' else ''}"


def _say(found: Shown, screen: Screen, where: str) -> None:
    attempt = found.attempt
    took = f" in {seconds(attempt.ms)}" if attempt.how in ("made", "failed") else ""
    tried = f", {attempt.attempts} attempts" if attempt.attempts > 1 else ""
    when = moment(attempt.at)
    screen.say(screen.style(f"{attempt.artifact}: {attempt.how}{took}{tried}, event {attempt.seq}, {when}", "bold"))
    if attempt.note:
        screen.say(attempt.note)
    if attempt.error:
        screen.say(screen.style(f"error: {attempt.error}", "red"))
    if found.prompt is not None:
        _say_piece(found.prompt, "prompt", screen)
    for piece in found.outputs:
        _say_piece(piece, piece.path or "text", screen)
    texts = {piece.digest for piece in found.outputs if not piece.path}
    for name, printed in (("stdout", found.stdout), ("stderr", found.stderr)):
        if printed is not None and printed.digest not in texts:  # of a command without files, stdout is its text
            _say_piece(printed, name, screen)
    if found.others:
        numbers = ", ".join(map(str, found.others[-8:]))
        screen.say(
            screen.style(f"earlier: {numbers} (headway show {as_word(attempt.artifact)} --at SEQ{where})", "dim")
        )


def _say_piece(piece: Piece, name: str, screen: Screen) -> None:
    said = name in PRINTED
    size = "" if said and piece.data is None else f" ({piece.size} bytes{'' if said else f', {piece.digest[:16]}'})"
    screen.say(screen.style(f"--- {name}{size}", "dim"))
    text = piece.text
    if piece.files:
        _say_files(piece.files, screen)
    elif text is None:
        screen.say(f"[{piece.what}]")
    else:
        _say_text(text, name, screen)


def _say_files(files: Sequence[Output], screen: Screen) -> None:
    """What is in a folder, file by file."""
    for file in files[:FILES]:
        sort = "" if file.kind == "file" else f"  {file.kind}"
        size = "" if file.kind == "link" else f"{file.size:,}"  # the bytes of a link are where it leads
        screen.say(f"{size:>11}  {file.path}{sort}")
    if len(files) > FILES:
        screen.say(screen.style(f"… and {len(files) - FILES:,} files more: --json lists all of them", "dim"))


def _say_text(text: str, name: str, screen: Screen) -> None:
    said = name in PRINTED
    text = text.replace("\r\n", "\n")
    if screen.is_terminal and len(text) > LONGEST:
        screen.say(text[:LONGEST])
        more = f"… and {len(text) - LONGEST:,} characters more: --{name if said else 'output'} shows all of it"
        screen.say(screen.style(more, "dim"))
    else:
        screen.say(text.removesuffix("\n"))
