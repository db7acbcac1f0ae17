"""Talking: parse, call the project, show the answer. No rules live here."""
