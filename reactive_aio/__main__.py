"""``python -m reactive_aio``: see `about`. With a command: see `observe.command`."""

import sys

from .about import command as about
from .observe import command

if __name__ == "__main__":
    sys.exit(command.main() if sys.argv[1:] else about.main())
