"""Headway for agents, over the Model Context Protocol. For `headway mcp` alone; talks, and holds no rules."""
