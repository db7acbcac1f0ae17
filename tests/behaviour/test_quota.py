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


def test_when_several_are_told_to_wait_the_longest_time_counts() -> None:
    """And none of them takes another's word back."""
    halt = Halt()
    for artifact_id, seconds in (("a", 60.0), ("b", 3600.0), ("c", 5.0), ("d", None)):
        halt.quota(artifact_id, seconds)
    pause = halt.pause()
    assert pause.artifact == "a"
    assert datetime.fromisoformat(pause.until) > datetime.now(UTC) + timedelta(minutes=50)
