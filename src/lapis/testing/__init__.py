"""For the tests of those who extend Lapis: a real server, the promises of an engine as tests, and waiting.

Only `engine_contract` and `fixtures` need pytest.
"""

import sys

from lapis.testing.server import Home, running_server
from lapis.testing.waiting import until, until_written

__all__ = ["Home", "running_server", "until", "until_written"]

if "pytest" in sys.modules:  # then a broken promise shows what was found in place of it
    sys.modules["pytest"].register_assert_rewrite("lapis.testing.engine_contract")
