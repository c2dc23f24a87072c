"""`lapis` on behalf of an installation that has no command line of its own: it submits in that one's name."""

import sys

from lapis.client import submitting_python

if __name__ == "__main__":
    submitting_python.speak_for(sys.argv[1])  # before the rest is imported: versions are read then

    from lapis.cli.__main__ import main

    sys.exit(main(sys.argv[2:]))
