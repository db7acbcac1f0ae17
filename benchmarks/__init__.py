"""How fast and how small: each figure against what the machine itself can do, within one run."""
