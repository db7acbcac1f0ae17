"""Every note begins with a title."""

import sys
from pathlib import Path

wrong = [name for name in sys.argv[1:] if not Path(name).read_text().startswith("# ")]
for name in sys.argv[1:]:
    print(f"{name}: {'no title' if name in wrong else 'ok'}")
sys.exit(f"{', '.join(wrong)}: no title" if wrong else 0)
