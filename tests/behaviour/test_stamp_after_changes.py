"""After changes, a stamp still vouches only for what a full judgement would say: of a plan that reads in every way."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headway import stamp
from headway.engine.result import Options
from headway.project import Project
from headway.version import VERSION
from headway.work import Work

PLAN = """\
id: stamped
goal: Every way to read a file
env: [STYLE]
vars: {word: WORD}
prompt_changes: follow
artifacts:
  glob: {sources: ['data/*.txt'], produces: out/glob.txt, run: "cat data/*.txt > {output}"}
  folder: {sources: [data], produces: out/folder.txt, run: "cat data/*/*.txt {sources} > {output} 2>&1 || true"}
  twice: {sources: [data/a.txt, tasks.py, prompt.md], produces: out/twice.txt, run: "cat {sources} > {output}"}
  code: {produces: out/code.txt, make: 'tasks:make', args: {word: 1}}
  prompted: {templates: {phase: prompt.md}, produces: out/prompted.txt, run: "cat {prompt} > {output}"}
  text: {sources: [data/b.txt], run: "cat data/b.txt"}
  styled: {env: [OTHER], requires: [text], produces: out/styled.txt, run: "cat {inputs.text} > {output}"}
  tree: {requires: [glob], produces: dist/, run: "cd dist; mkdir deep; cp ../{inputs.glob} deep/first; echo > x"}
  member: {requires: [tree], sources: [dist/x], produces: out/member.txt, run: "cat dist/x > {output}"}
  stranger: {sources: ['out/*d.txt'], produces: strange.txt, run: "cat out/*d.txt > {output}"}
  first: {sources: [data/a.txt], modifies: [shared.txt], run: "cat data/a.txt >> shared.txt"}
  second: {requires: [first, text], modifies: [shared.txt], run: "cat {inputs.text} >> shared.txt"}
  reader: {sources: [shared.txt], produces: out/reader.txt, run: "cat shared.txt > {output}"}
  words: {produces: out/words.txt, run: "sh tool.sh {vars.word} data > {output}"}
  picky: {sources: [data/b.txt], produces: out/picky.txt, run: "grep -v fail data/b.txt > {output}"}
pipelines:
  each:
    units: {files: 'units/*.md'}
    state: state.json
    phases:
      copy: {run: "cat {file} {state} > {outputs.copy}", outputs: {copy: 'out/{unit}.md'}, pre_state: true}
"""

FILES = {
    "data/a.txt": "a\n",
    "data/b.txt": "b\n",
    "data/deep/c.txt": "c\n",
    "tasks.py": "import helper\ndef make(word):\n    return helper.text(word)\n",
    "helper.py": "def text(word):\n    return f'{word}'\n",
    "prompt.md": "A prompt\n{% include 'part.md' %}\n",
    "part.md": "Its part\n",
    "shared.txt": "begin\n",
    "tool.sh": "echo tool $1\n",
    "units/u.md": "unit\n",
    "state.json": "{}\n",
}
MADE = ["out/glob.txt", "out/code.txt", "out/styled.txt", "dist/x", "dist/deep/first", "shared.txt", "out/u.md", "dist"]
NEW = [
    "data/new.txt",
    "data/deep/new.txt",
    "dist/new",
    "dist/deep/new",
    "units/v.md",
    "out/word",
    "WORD",
    "out/fresh.txt",
]
CHANGED = st.sampled_from([*FILES, *MADE])
LINE = st.sampled_from(["", "# 1\n", "# 2\n", "# fail\n"])


class StampAndFullJudgement(RuleBasedStateMachine):
    """One project that is changed in every way and run in between; a stamp may never know better."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="headway-stamp-"))
        self.environ = {"PATH": os.environ["PATH"], "STYLE": "1", "OTHER": "1"}
        (self.root / "headway.yaml").write_text(PLAN)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
        self.run(on_edit=None)
        self.run(on_edit=None)
        assert self._changed() == frozenset(), "otherwise nothing here would be tried"

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    # Files change.

    @rule(name=CHANGED, line=LINE, put_back=st.booleans())
    def write(self, name: str, line: str, put_back: bool) -> None:
        """A file becomes another, or what it once was; its time may be put back."""
        path = self.root / name
        if path.is_file():
            before = path.stat()
            path.write_text(FILES.get(name, "made\n") + line)
            if put_back:
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(name=CHANGED)
    def delete(self, name: str) -> None:
        """Something is deleted."""
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    @rule(name=st.sampled_from([*NEW, *FILES]), line=LINE)
    def appear(self, name: str, line: str) -> None:
        """Something appears, or is there again."""
        path = self.root / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FILES.get(name, "new\n") + line)

    @rule(name=CHANGED, to=CHANGED)
    def swap(self, name: str, to: str) -> None:
        """Two files change their names."""
        one, other, aside = self.root / name, self.root / to, self.root / "aside"
        if one.is_file() and other.is_file() and one != other:
            one.rename(aside)
            other.rename(one)
            aside.rename(other)

    @rule(name=st.sampled_from(list(FILES)))
    def link(self, name: str) -> None:
        """A file moves elsewhere, and a link takes its place."""
        path, to = self.root / name, self.root / f"linked-{name.replace('/', '-')}"
        if path.is_file() and not path.is_symlink():
            path.rename(to)
            path.symlink_to(to)

    @rule(name=st.sampled_from(["STYLE", "OTHER"]), value=st.sampled_from(["1", "2"]))
    def set_variable(self, name: str, value: str) -> None:
        """A variable of the environment changes."""
        self.environ[name] = value

    @rule(word=st.sampled_from(["WORD", "tool.sh", "data"]))
    def change_plan(self, word: str) -> None:
        """The plan file changes."""
        (self.root / "headway.yaml").write_text(PLAN.replace("word: WORD", f"word: {word}"))

    # Running.

    @rule(on_edit=st.sampled_from([None, "accept", "discard"]), only=st.sampled_from(["", "", "tree"]))
    def run(self, on_edit: Literal["accept", "discard"] | None = None, only: str = "") -> None:
        """Make what is stale, or fail to."""
        work = self._work()
        meant = work.taken_in(work.meant(None, None))
        work.run(
            meant.plan_id, Options(targets=(only,) if only else (), on_edit=on_edit, jobs=1), execution=meant.execution
        )

    # Agreeing.

    @invariant()
    def what_is_left_of_a_stamp_says_what_a_full_judgement_says(self) -> None:
        """About every artifact; and a stamp that holds vouches for all of them."""
        work = self._work()
        thorough = work.session.judge(
            "stamped", execution=work.project.show("stamped")
        )  # no stamp is about what is given
        full = {a: reason.text for a, reason in thorough.reasons.items() if not reason.fresh}
        for left in (work.session.judge("stamped"), work.session.judge("stamped", writable=True)):
            assert {a: reason.text for a, reason in left.reasons.items() if not reason.fresh} == full
        assert list(work.session.judge("stamped").reasons) == list(thorough.reasons)
        if self._changed() == frozenset():
            assert full == {}

    def _work(self) -> Work:
        return Work(Project(self.root, by="test"), environ=self.environ)

    def _changed(self) -> frozenset[str] | None:
        found = stamp.changes(str(self.root), "headway.yaml", VERSION, self.environ)
        return None if found is None else found[0]


StampAndFullJudgement.TestCase.settings = settings(max_examples=10, stateful_step_count=20)
TestStampAndFullJudgement = StampAndFullJudgement.TestCase
