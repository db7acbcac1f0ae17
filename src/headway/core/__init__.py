"""The rules, and nothing else: no I/O, no clock, no randomness. Time and ids arrive as arguments."""
