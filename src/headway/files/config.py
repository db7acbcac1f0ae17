"""headway.toml, or [tool.headway] in pyproject.toml: what a project says about itself besides its plans."""

from __future__ import annotations

import os
from typing import Any

from headway.core.agents import check_roles
from headway.core.plan import Role
from headway.errors import PlanInvalid, UsageError
from headway.files.plan_reader import read_roles


def project_roles(root: str) -> dict[str, Role]:
    """The agents that a project has for all its plans, each under [agents.NAME]."""
    for name, inner in (("headway.toml", ()), ("pyproject.toml", ("tool", "headway"))):
        found: Any = _load(os.path.join(root, name), name)
        for key in inner:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict) and "agents" in found:
            roles, problems = read_roles(found["agents"])
            problems += check_roles(roles)
            if problems:
                raise PlanInvalid(problems, where=name)
            return roles
    return {}


def _load(path: str, name: str) -> dict[str, Any]:
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise UsageError(
            f"{name} cannot be read", facts={"reason": error}, hint="correct it", code="config.unreadable"
        ) from error
