"""``python -m reactive_aio.tck`` runs `command`."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
