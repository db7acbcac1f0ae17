"""Doing: judging what is stale, making it, and recording what happened. Knows no surface."""
