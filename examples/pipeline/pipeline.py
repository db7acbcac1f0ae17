"""A data pipeline in Python: how do the modules of Python's own standard library use each other?

The data is real and on every machine: the source files of the Python that runs this.
"""

import ast
import csv
import io
import platform
import sysconfig
from pathlib import Path

from headway import Context, Plan

GROUPS = ("a-c", "d-h", "i-o", "p-s", "t-z")
TOP = 5

plan = Plan("Which modules of the standard library are used most by the others?", id="stdlib")


def scan(group: str, python: str) -> list[dict[str, object]]:
    """The modules whose names begin with some letters: lines of code, and what each imports."""
    first, last = group.split("-")
    found = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if first <= path.stem[0].lower() <= last:
            text = path.read_text(encoding="utf-8", errors="replace")
            found.append({"module": path.stem, "lines": text.count("\n"), "imports": sorted(imports(ast.parse(text)))})
    return found


def imports(tree: ast.Module) -> set[str]:
    """The top-level names that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


for group in GROUPS:  # one artifact each, made side by side; another Python is another argument, so it is scanned again
    plan.add(
        f"scan/{group}",
        make=scan,
        args={"group": group, "python": platform.python_version()},
        produces=f"build/scan/{group}.json",
    )


@plan.artifact(requires=[f"scan/{group}" for group in GROUPS], produces="build/modules.csv")
def modules(ctx: Context) -> str:
    """One row a module: its lines, how many it imports, how many import it."""
    rows = [row for group in GROUPS for row in ctx.inputs[f"scan/{group}"].json()]
    known = {row["module"] for row in rows}
    used = {name: sum(name in row["imports"] for row in rows) for name in known}
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["module", "lines", "imports", "used_by"])
    for row in rows:
        table.writerow([row["module"], row["lines"], len(known & set(row["imports"])), used[row["module"]]])
    return out.getvalue()


@plan.artifact(requires=["modules"], produces="build/top.json")
def top(ctx: Context) -> list[dict[str, str]]:
    """The most used ones."""
    rows = list(csv.DictReader(io.StringIO(ctx.inputs["modules"].text())))
    return sorted(rows, key=lambda row: (-int(row["used_by"]), row["module"]))[:TOP]


@plan.artifact(requires=["top"], produces="build/chart.svg")
def chart(ctx: Context) -> str:
    """Bars."""
    rows = ctx.inputs["top"].json()
    scale = 300 / max(int(row["used_by"]) for row in rows)
    bars = [
        f'<rect x="100" y="{20 * i + 4}" width="{int(row["used_by"]) * scale:.0f}" height="14" fill="steelblue"/>'
        f'<text x="4" y="{20 * i + 15}" font-size="12">{row["module"]}</text>'
        for i, row in enumerate(rows)
    ]
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="420" height="{20 * len(rows) + 8}">{"".join(bars)}</svg>\n'


@plan.artifact(requires=["top", "modules", "chart"], produces="report.md")
def report(ctx: Context) -> str:
    """A page with the chart in it."""
    rows = ctx.inputs["top"].json()
    count = len(ctx.inputs["modules"].text().splitlines()) - 1
    lines = [f"- `{row['module']}`: used by {row['used_by']} others, {row['lines']} lines" for row in rows]
    return "\n".join(
        ["# The standard library", "", f"{count} modules. The most used:", "", *lines, "", "![](build/chart.svg)", ""]
    )


if __name__ == "__main__":
    print(plan.run())
