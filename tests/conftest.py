"""What every test shares: an environment without the developer's settings, and how Hypothesis searches."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a slow disk is not a bug. Where CI is set the examples are always the same, so that a red build
# is about the change; elsewhere each run looks somewhere new, and tries first what failed before.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No HEADWAY_* variable of the surrounding shell reaches a test."""
    for name in [name for name in os.environ if name.startswith("HEADWAY_")]:
        monkeypatch.delenv(name)
