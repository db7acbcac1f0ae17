"""The truth: append-only, hash-chained ledgers. Knows events and their order, not what they mean."""
