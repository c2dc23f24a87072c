"""`lapis` on behalf of an installation that has no command line of its own: its scripts run in its interpreter."""

import sys

from lapis.cli.__main__ import main
from lapis.client import script_python

if __name__ == "__main__":
    script_python.use(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
