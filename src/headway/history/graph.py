"""The whole graph of a project's history: all nodes and edges at once, and drawn as text for other tools."""

from __future__ import annotations

from collections.abc import Iterable

from headway.history.dag import Dag
from headway.history.goals import edges_of, path_of, temporal_edge
from headway.history.shapes import VERSION, Edge, GoalDetail, Node, ProjectDag, Task, task_id


def full_dag(dag: Dag) -> ProjectDag:
    """Goals, tasks, artifacts, what is outside, and every edge between them."""
    index = dag.index()
    found = graph_of(dag.goals(), project_id=index.project_id)
    found.project_path = dag.root
    found.last_updated = index.last_updated
    found.total_goals = index.summary.total_goals
    found.completed_goals = index.summary.completed_goals
    return found


def graph_of(goals: Iterable[GoalDetail], *, project_id: str = "") -> ProjectDag:
    """The graph of some goals, in their order."""
    dag = ProjectDag(
        project_id=project_id,
        project_path="",
        version=VERSION,
        last_updated="",
        total_goals=0,
        completed_goals=0,
        goals={},
        tasks={},
        artifacts={},
        externals={},
        edges=[],
    )
    before = ""
    for number, goal in enumerate(goals, 1):
        dag.goals[goal.id] = _goal_node(goal, project_id)
        for task in goal.tasks:
            dag.tasks[task_id(goal.id, task.id)] = _task_node(goal, task, project_id)
            for path in task.produces:
                known = dag.artifacts.get(path)
                if known is None or known.completed_at <= task.completed_at:
                    dag.artifacts[path] = _artifact_node(goal, task, path, project_id)
        dag.edges += edges_of(goal).values()
        if goal.created_at:
            if before:
                edge = temporal_edge(before, goal.id, goal.created_at)
                edge.sequence = number - 1
                dag.edges.append(edge)
            before = goal.id
    for edge in dag.edges:
        for name in (edge.source, edge.target):
            if name not in dag.tasks and name not in dag.artifacts and name not in dag.goals:
                dag.externals.setdefault(name, Node(id=name, type="external", title=name, project_id=project_id))
    return dag


def _goal_node(goal: GoalDetail, project_id: str) -> Node:
    return Node(
        id=goal.id,
        type="goal",
        title=goal.title,
        description=goal.description,
        status=goal.status,
        progress=goal.progress,
        produces=[path for task in goal.tasks for path in task.produces],
        created_at=goal.created_at,
        completed_at=goal.completed_at or "",
        project_id=project_id,
        ms=round(goal.metrics.duration_seconds * 1000),
    )


def _task_node(goal: GoalDetail, task: Task, project_id: str) -> Node:
    own = {t.id for t in goal.tasks} if task.requires else set()
    needs = [task_id(goal.id, r) if r in own else r for r in task.requires]
    return Node(
        id=task_id(goal.id, task.id),
        type="task",
        title=task.id,
        description=task.description,
        status=task.status,
        progress=100 if task.status == "complete" else 0,
        depends_on=needs,
        produces=task.produces,
        requires=needs,
        created_at=goal.created_at,
        completed_at=task.completed_at,
        goal_id=goal.id,
        project_id=project_id,
        content_hash=task.content_hash or "",
        category=task.category,
        contract=task.contract,
        path=path_of(task) or "",
        ms=task.ms,
    )


def _artifact_node(goal: GoalDetail, task: Task, path: str, project_id: str) -> Node:
    place = task.produces.index(path)
    return Node(
        id=path,
        type="artifact",
        title=path,
        description=task.description,
        status="complete",
        progress=100,
        depends_on=[task_id(goal.id, task.id)],
        created_at=task.completed_at,
        completed_at=task.completed_at,
        goal_id=goal.id,
        project_id=project_id,
        content_hash=task.hashes[place] if task.hashes else task.content_hash or "",
        category=task.category or task.type,
        path="" if path.endswith("#text") else path,
    )


# Drawings.

_ARROWS = {"dependency": "-->", "produces": "-.->", "integrates": "==>", "temporal": "-.-", "cross_project": "-->"}
_STYLES = {"dependency": "solid", "produces": "dashed", "integrates": "bold", "temporal": "dotted"}


def to_mermaid(dag: ProjectDag) -> str:
    """A Mermaid flow chart: a box for each goal, its tasks in it."""
    names = _numbered(dag)
    lines = ["graph TD"]
    for goal_id, goal in dag.goals.items():
        lines.append(f'    subgraph {names[goal_id]}["{_mermaid(goal.title)}"]')
        lines += [
            f'        {names[node.id]}["{_mermaid(node.title)}"]'
            for node in dag.tasks.values()
            if node.goal_id == goal_id
        ]
        lines.append("    end")
    lines += [f'    {names[node.id]}[/"{_mermaid(node.title)}"/]' for node in dag.artifacts.values()]
    lines += [f'    {names[node.id]}(["{_mermaid(node.title)}"])' for node in dag.externals.values()]
    lines += [f"    {names[e.source]} {_ARROWS[e.type]}{_kind(e)} {names[e.target]}" for e in dag.edges]
    return "\n".join(lines)


def _kind(edge: Edge) -> str:
    return f"|{edge.kind}|" if edge.kind else ""


def to_graphviz(dag: ProjectDag) -> str:
    """The same for Graphviz's `dot`."""
    names = _numbered(dag)
    lines = ["digraph history {", "  rankdir=LR;", "  node [shape=box];"]
    for goal_id, goal in dag.goals.items():
        lines += [f"  subgraph cluster_{names[goal_id]} {{", f"    label={_quoted(goal.title)};"]
        lines.append(f"    {names[goal_id]} [label={_quoted(goal.id)}, shape=oval];")
        lines += [f"    {names[n.id]} [label={_quoted(n.title)}];" for n in dag.tasks.values() if n.goal_id == goal_id]
        lines.append("  }")
    lines += [f"  {names[n.id]} [label={_quoted(n.title)}, shape=note];" for n in dag.artifacts.values()]
    lines += [f"  {names[n.id]} [label={_quoted(n.title)}, shape=ellipse];" for n in dag.externals.values()]
    for edge in dag.edges:
        label = f", label={_quoted(edge.kind)}" if edge.kind else ""
        style = _STYLES.get(edge.type, "solid")
        lines.append(f"  {names[edge.source]} -> {names[edge.target]} [style={style}{label}];")
    return "\n".join([*lines, "}"])


def _numbered(dag: ProjectDag) -> dict[str, str]:
    """A plain name for every node: ids may hold anything."""
    nodes = (*dag.goals, *dag.tasks, *dag.artifacts, *dag.externals)
    return {node: f"n{number}" for number, node in enumerate(dict.fromkeys(nodes))}


def _mermaid(text: str) -> str:
    return " ".join(text.split()).replace('"', "#quot;")


def _quoted(text: str) -> str:
    line = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{line}"'
