"""What can be derived from a state: plan.json, plan.md, checkpoints, sentences. Deleting any of it changes nothing."""
