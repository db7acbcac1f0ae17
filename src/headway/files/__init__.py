"""The world: observing and writing files. Knows paths and bytes, never plans' history."""
