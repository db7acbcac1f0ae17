"""Which files of a project a Python source imports, by its text alone."""

from __future__ import annotations

import pytest

from headway.history.imports import imported_files

FILES = {
    "src/app/__init__.py",
    "src/app/models.py",
    "src/app/api/__init__.py",
    "src/app/api/routes.py",
    "tools/helper.py",
    "json.py",
}


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("src/app/main.py", "import app.models", ["src/app/models.py"]),
        ("src/app/main.py", "import app.models as m, app.api.routes", ["src/app/api/routes.py", "src/app/models.py"]),
        ("src/app/main.py", "from app import models", ["src/app/__init__.py", "src/app/models.py"]),
        ("src/app/main.py", "from app.models import User", ["src/app/models.py"]),
        ("src/app/main.py", "from . import models", ["src/app/models.py"]),
        ("src/app/api/routes.py", "from ..models import User", ["src/app/models.py"]),
        ("src/app/api/routes.py", "from .. import models", ["src/app/models.py"]),
        ("src/app/main.py", "from app import (\n    models,  # the models\n    api,\n)", [
            "src/app/__init__.py", "src/app/api/__init__.py", "src/app/models.py",
        ]),
        ("src/app/main.py", "from app import models, \\\n    api", [
            "src/app/__init__.py", "src/app/api/__init__.py", "src/app/models.py",
        ]),
        ("src/app/main.py", "def f():\n    import helper", []),
        ("tools/run.py", "def f():\n    import helper", ["tools/helper.py"]),
        ("main.py", "import tools.helper", ["tools/helper.py"]),
        ("main.py", "import json, os.path, requests", []),
        ("main.py", "# import tools.helper\ntext = '''\nimport tools.helper\n'''\n", []),
        ("main.py", "print('import tools.helper')\nimportant = tools", []),
        ("tools/helper.py", "import tools.helper", []),
        ("main.py", "import tools.helper; def (broken", ["tools/helper.py"]),
        ("main.py", "", []),
    ],
)  # fmt: skip
def test_imports_are_found_by_their_form(path: str, text: str, found: list[str]) -> None:
    """Absolute and relative, of modules and packages; never of strings, comments, libraries or the file itself."""
    assert imported_files(path, text, FILES.__contains__) == found
