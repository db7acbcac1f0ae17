"""A limit that is used up is a pause: when it is worth trying again, in the words of whoever knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headway import Plan, QuotaExhausted
from headway.engine.ending import Halt
from tests.workshop import Workshop


@pytest.mark.parametrize("word", ["soon", -5, 1e12, float("nan"), None, [30]])
def test_a_time_to_wait_that_is_none_pauses_all_the_same(tmp_path: Path, word: Any) -> None:
    plan = Plan("quota", id="quota", project=tmp_path)

    @plan.artifact(produces="label.txt")
    def label() -> str:
        raise QuotaExhausted("slow down", retry_after=word)

    paused = plan.run(check=False)
    assert paused.exit_code == 75
    assert paused.paused is not None
    assert (paused.paused.code, paused.paused.until) == ("quota", "")


@pytest.mark.parametrize(
    ("said", "when"),
    [
        ("Retry-After: 86400", "tomorrow"),
        ("retry after 1.5 s", "today"),
        ("Retry-After: {date:%a, %d %b %Y %H:%M:%S} GMT", "tomorrow"),
        ("Retry-After: {date:%Y-%m-%dT%H:%M:%SZ}", "tomorrow"),
        ("Retry-After: 99999999999999999999", ""),
        ("Retry-After: soon", ""),
    ],
)
def test_a_command_says_in_seconds_or_by_a_date_when_to_try_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: str, when: str
) -> None:
    """As servers do; what is neither is no time."""
    now = datetime.now(UTC)
    days = {"today": now, "tomorrow": now + timedelta(days=1)}
    shop = Workshop(tmp_path)
    line = said.format(date=days["tomorrow"])
    shop.file.write_text(f"id: p\ngoal: g\nartifacts:\n  a: {{produces: a, run: \"echo '{line}' >&2; exit 75\"}}\n")
    until = shop.run(capsys, "run", "--json").json["paused"]["until"]
    if not when:
        assert until == ""
    else:
        assert abs(datetime.fromisoformat(until) - days[when]) < timedelta(minutes=5)


def test_a_pause_is_not_forgotten_because_something_else_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The failure decides the exit code; where to wait, and until when, is on record all the same, until it is made."""
    shop = Workshop(tmp_path)
    shop.file.write_text(
        "id: p\ngoal: g\njobs: 1\nartifacts:\n  bad: {produces: bad, run: exit 1}\n"
        "  asks: {produces: asks, run: \"test -f go || { echo 'Retry-After: 3600' >&2; exit 75; }; echo > {output}\"}\n"
    )
    ran = shop.run(capsys, "run", "--json")
    assert (ran.code, ran.json["paused"]["code"], list(ran.json["failed"])) == (1, "quota", ["bad"])
    paused = shop.run(capsys, "status", "--json").json["paused"]
    assert (paused["code"], paused["artifact"], paused["until"]) == ("quota", "asks", ran.json["paused"]["until"])
    assert "Paused at asks: quota, until" in shop.run(capsys, "status").out
    assert "the run paused here (quota) until" in shop.run(capsys, "why", "asks").out
    (tmp_path / "go").touch()
    shop.run(capsys, "run")
    assert shop.run(capsys, "status", "--json").json["paused"] is None


def test_when_several_are_told_to_wait_the_longest_time_counts() -> None:
    """And it is told of whoever named it; none of them takes another's word back."""
    halt = Halt()
    for artifact_id, seconds in (("a", 60.0), ("b", 3600.0), ("c", 5.0), ("d", None)):
        halt.quota(artifact_id, seconds)
    pause = halt.pause()
    assert pause.artifact == "b"
    assert datetime.fromisoformat(pause.until) > datetime.now(UTC) + timedelta(minutes=50)


def test_when_nobody_says_how_long_the_first_that_was_told_to_wait_is_named() -> None:
    """There is no time that could be another's."""
    halt = Halt()
    for artifact_id in ("a", "b"):
        halt.quota(artifact_id, None)
    assert (halt.pause().artifact, halt.pause().until) == ("a", "")
    halt.quota("c", 5.0)
    assert halt.pause().artifact == "c"
