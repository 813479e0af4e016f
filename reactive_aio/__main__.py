"""``python -m reactive_aio``: see `observe.command`."""

import sys

from .observe.command import main

if __name__ == "__main__":
    sys.exit(main())
