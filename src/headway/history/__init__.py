"""What was ever done in a project: goals, what they made, what depends on it. Derived from ledgers; decides nothing."""
