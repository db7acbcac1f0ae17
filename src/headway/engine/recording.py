"""What a run writes into its plan's ledger, and the plan as it is after that."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core import commands as cmd
from headway.core.events import Record
from headway.core.state import State, Step
from headway.ledger.writer import Outcome, Writer


class Recorder:
    """Has commands carried out in the name of whoever runs the plan."""

    def __init__(self, writer: Writer, by: str) -> None:
        self._writer = writer
        self._by = by

    @property
    def state(self) -> State:
        """The plan after all that was recorded so far."""
        return self._writer.plan

    def __call__(self, command: cmd.Command, wait: bool = False) -> list[Record]:
        """What a command causes. With `wait`, it is on disk on return."""
        return self._writer.execute(command, by=self._by, wait=wait)

    def all(self, commands: Sequence[cmd.Command], wait: bool) -> list[Outcome]:
        """What many commands cause, in one write: for each its events, or why it was refused."""
        return self._writer.execute_all(commands, by=self._by, wait=wait)

    def step(self, artifact_id: str, token: int, name: str, step: Step) -> None:
        """A durable part of an attempt: it is on disk on return. Safe in any thread."""
        command = cmd.RecordStep(id=artifact_id, token=token, name=name, step=step)
        self._writer.execute(command, by=self._by, wait=True)
