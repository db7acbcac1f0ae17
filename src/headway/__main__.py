"""`python -m headway` is `headway`."""

from headway.surfaces.cli.entry import main

if __name__ == "__main__":
    raise SystemExit(main())
