"""Make for agent work: a plan is a graph of artifacts, every fact is an event, everything else can be rebuilt."""

__all__: list[str] = []
