"""Headway for agents, over the Model Context Protocol. Imported by `headway mcp` alone; it talks, and holds no rules."""
