"""One module per verb, with `configure(parser)` and `run(args, screen) -> int`. Imported when it is called."""
