"""The workspace, signing in, and config.json."""
