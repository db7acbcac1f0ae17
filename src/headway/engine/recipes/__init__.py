"""How artifacts are made: a command or a function. One attempt in, what came of it out; nothing is recorded here."""
