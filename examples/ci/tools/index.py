"""The titles, as a list."""

import sys
from pathlib import Path

for name in sys.argv[1:]:
    print("-", Path(name).read_text().splitlines()[0].removeprefix("# "))
