"""``python -m loopkit``: the command line."""

from __future__ import annotations

import sys

from loopkit._cli import main

if __name__ == "__main__":
    sys.exit(main())
