"""Stands in for a model that writes code: fills a template from the schema, and prints it."""

import argparse
import json
from pathlib import Path
from string import Template

HEAD = {
    "dataclass": "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass User:",
    "namedtuple": "from typing import NamedTuple\n\n\nclass User(NamedTuple):",
}

parser = argparse.ArgumentParser()
parser.add_argument("template")
parser.add_argument("--style", choices=HEAD, default="dataclass")
args = parser.parse_args()

fields = json.loads(Path("schema/user.json").read_text())
print(
    Template(Path(args.template).read_text()).substitute(
        user_head=HEAD[args.style],
        fields="\n".join(f"    {name}: {kind}" for name, kind in fields.items()),
        properties="\n".join(f"    @property\n    def {n}(self) -> {kind}: ...\n" for n, kind in fields.items()),
        columns=", ".join(fields),
        marks=", ".join("?" for _ in fields),
    ),
    end="",
)
