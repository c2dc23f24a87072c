"""How a process speaks to the server: requests, the local server, snapshots, journals and their shipping. Light."""
