"""How a process speaks to the server: requests, the local server, snapshots, journals and their shipping. Light."""

from lapis.later import load_late

load_late(__name__)
