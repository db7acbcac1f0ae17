"""`headway dag`: what people see of the history, and what machines get."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.workshop import Workshop


@pytest.fixture
def shop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workshop:
    """A project in which one goal is complete, and one has failed, with something blocked behind it."""
    shop = Workshop(tmp_path / "shop")
    shop.run(capsys, "run")
    (shop.root / "auth.yaml").write_text(
        """\
id: auth
goal: Add authentication
artifacts:
  service: {requires: [model], produces: src/auth.py, run: "cat {inputs.model} > {output}"}
  broken: {requires: [service], run: "exit 3"}
  login: {requires: [broken], run: "true"}
  review: {description: Look at it}
""",
        encoding="utf-8",
    )
    shop.run(capsys, "run", "--plan", str(shop.root / "auth.yaml"))
    return shop


def test_show_draws_the_pipeline_of_all_goals(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """Goals in order with their dates, artifacts with their signs, and what is blocked or pending in words."""
    shown = re.sub(r"\d{4}-\d\d-\d\d", "DATE", shop.run(capsys, "dag", "show").out)
    assert shown == (
        "Goal 1: Build an API ✓ [api]  (DATE)\n"
        "  ✓ model\n"
        "  ✓ routes  needs model\n"
        "\n"
        "Goal 2: Add authentication ✗ [auth]  (failed)\n"
        "  ✓ service  needs api:model\n"
        "  ✗ broken  failed  exit code 3\n"
        "  ▫ login  blocked  needs broken\n"
        "  · review  pending\n"
        "\n"
        "2 goals, 1 complete; 3 outputs, 8 edges.\n"
    )


def test_what_was_skipped_is_shown_as_skipped_and_not_counted_complete(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was not made."""
    shop.run(capsys, "skip", "review", "--reason", "later", "--plan-id", "auth")
    assert "  – review  skipped\n" in shop.run(capsys, "dag", "show").out
    totals = shop.run(capsys, "dag", "show", "--totals", "--json").json["artifacts"]
    assert (totals["complete"]["count"], totals["skipped"]["count"]) == (3, 1)


def test_show_of_one_goal_and_as_json(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` gives the index, a goal's file, or with --full all nodes and edges."""
    assert [g["id"] for g in shop.run(capsys, "dag", "show", "--json").json["goals"]] == ["api", "auth"]
    assert len(shop.run(capsys, "dag", "show", "auth", "--json").json["tasks"]) == 4
    full = shop.run(capsys, "dag", "show", "--full", "--json").json
    assert len(full["tasks"]) == 6
    assert len(full["edges"]) == 8
    assert shop.run(capsys, "dag", "show", "auht").code == 2
    assert "did you mean: auth" in shop.run(capsys, "dag", "show", "auht").err


def test_drawings_for_other_tools(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """Mermaid and Graphviz text, of all goals or of one."""
    assert shop.run(capsys, "dag", "show", "--mermaid").out.startswith("graph TD\n")
    assert shop.run(capsys, "dag", "show", "api", "--graphviz").out.startswith("digraph history {\n")
    assert shop.run(capsys, "dag", "show", "--mermaid", "--json").json["format"] == "mermaid"


def test_search_impact_and_provenance(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """The three questions, answered in words and as documents."""
    assert "api:model" in shop.run(capsys, "dag", "search", "user", "model").out
    assert shop.run(capsys, "dag", "search", "nothing").out == "Nothing matches. Next: headway dag show\n"
    hits = shop.run(capsys, "dag", "search", "exit", "--kind", "failure", "--json").json["hits"]
    assert [h["node"] for h in hits] == ["auth:broken"]
    said = shop.run(capsys, "dag", "impact", "model").out
    assert said.startswith("A change of api:model touches 4 artifacts.\n")
    assert shop.run(capsys, "dag", "impact", "model", "--json").json["goals"] == ["api", "auth"]
    (shop.root / "src" / "auth.py").write_text("mine", encoding="utf-8")
    said = shop.run(capsys, "dag", "provenance", "src/auth.py").out
    assert "goal: Add authentication [auth]" in said
    assert "command: cat {inputs.model} > {output}" in said
    assert "from: api:model" in said
    assert "src/auth.py: changed since" in said
    assert "rests on: api:model" in said
    assert "used by: auth:broken, auth:login" in said


def test_rebuild_says_what_it_found(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """How much there is, files that are missing or changed, and plans that cannot be read (exit 4)."""
    (shop.root / "src" / "model.py").unlink()
    (shop.root / "src" / "auth.py").write_text("mine", encoding="utf-8")
    done = shop.run(capsys, "dag", "rebuild")
    assert done.code == 0
    assert "Rebuilt: 2 goals (2 from ledgers), 3 outputs, 8 edges." in done.out
    assert "missing: src/model.py" in done.out
    assert "changed since it was made: src/auth.py" in done.out
    ledger = shop.ledger("api")
    data = bytearray(ledger.read_bytes())
    data[-60] ^= 1
    ledger.write_bytes(data)
    done = shop.run(capsys, "dag", "rebuild", "--json")
    assert done.code == 4
    assert list(done.json["unreadable"]) == ["api"]


def test_a_run_that_waits_for_another_plan_ends_with_the_command_over_there(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line of the artifact says why, the receipt what to type next."""
    shop.edit("echo model", "echo other")
    shop.save()
    done = shop.run(capsys, "run", "--plan", str(shop.root / "auth.yaml"))
    assert done.code == 1
    assert "api:model is stale: recipe changed" in done.out
    assert done.out.rstrip().endswith("Next: headway run model --plan-id api")


def test_totals_and_an_empty_project(shop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figures over all goals; where there is nothing yet, it says what to do."""
    assert "Goals: 1 complete, 1 failed" in shop.run(capsys, "dag", "show", "--totals").out
    empty = tmp_path / "empty"
    empty.mkdir()
    said = shop.run(capsys, "dag", "show", "--project", str(empty)).out
    assert said == "No goal has been run here yet. Next: headway run\n"
    assert list(empty.iterdir()) == []
