"""Scripted writers: what they write follows from their prompts, so that a changed prompt changes what it touches.

In place of each of these a model would be asked; `ctx.respond` puts on record what it answered.
"""

import hashlib
import json

WORDS = ("the rain a road her lamp his map no door old salt slow bells cold bread blue smoke left long ago").split()  # noqa: SIM905  # easier to read than a list


def speak(prompt, words):
    """An answer of so many words that only this prompt gets."""
    digest = hashlib.sha256(prompt.encode()).digest()
    return " ".join(WORDS[digest[n % 32] % len(WORDS)] for n in range(words))


def outline(ctx):
    titles = ctx.sources[0].read_text().split("\n")
    scenes = [
        {"id": f"ch{n // 4 + 1:03}_sc{n % 4 + 1:03}", "title": title} for n, title in enumerate(filter(None, titles))
    ]
    return {"scenes": scenes}


def plan(ctx):
    return {"title": ctx.item["title"], "beats": ctx.respond(speak(ctx.prompt, 6)).split()}


def preflight(ctx):
    state = json.loads(ctx.state.read_text())
    return {"patch": {"scene": ctx.unit, "after": state["last"]}}


def continuity_pack(ctx):
    return f"{ctx.respond(speak(ctx.prompt, 8))}\n"


def write(ctx):
    card = ctx.inputs["plan"].json()
    said = ctx.respond(speak(ctx.prompt, 30))
    prose = f"## {card['title']}\n\n{said}, um, and so on.\n"
    return {"prose": prose, "state_patch": {"last": ctx.unit, "words": len(prose.split())}}


def repair(ctx):
    """Takes out one filler a round, as a model may."""
    fillers = [", um", " and so on"][: ctx.iteration]
    prose = ctx.inputs["write"]["prose"]
    for filler in fillers:
        prose = prose.replace(filler, "")
    ctx.respond(speak(ctx.prompt, 3))
    return {"prose": prose, "state_patch": json.loads(ctx.inputs["write"]["state_patch"])}


def state_repair(ctx):
    words = len(ctx.inputs["repair"]["prose"].split())
    ctx.respond(f"{words} words")
    return {"state_patch": {"last": ctx.unit, "words": words}}


def lint(ctx):
    prose = ctx.inputs["repair"]["prose"]
    patch = json.loads(ctx.inputs["state_repair"]["state_patch"])
    found = [filler for filler in (", um", "and so on") if filler in prose]
    found += [] if patch["words"] == len(prose.split()) else ["the patch does not fit the prose"]
    ctx.respond(", ".join(found) or "fine")
    return {"status": "fail" if found else "pass", "found": found}


def apply(ctx):
    """Hands the state on. It finds the state as the scene before left it, however often it is called."""
    state = json.loads(ctx.state.read_text())
    patch = json.loads(ctx.inputs["state_repair"]["state_patch"])
    state["scenes"].append(ctx.unit)
    state["words"] += patch["words"]
    state["last"] = patch["last"]
    return {"post_state": state, "registry": {"scenes": len(state["scenes"])}}


def book(ctx):
    scenes = ctx.inputs["scene:*/repair"].json().values()
    return "# The book\n\n" + "\n".join((ctx.root / scene["prose"]["path"]).read_text() for scene in scenes)
