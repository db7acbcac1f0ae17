"""The memory ledger keeps the contract."""

from __future__ import annotations

import pytest

from headway.ledger.memory import MemoryLedger, Shelf
from tests.contracts.ledger import LedgerContract


class TestMemoryLedger(LedgerContract):
    """The contract, in memory."""

    @pytest.fixture(autouse=True)
    def shelf(self) -> None:
        """A place that several ledgers share."""
        self._shelf = Shelf()

    def open(self) -> MemoryLedger:
        return MemoryLedger(self._shelf)
