"""Keeps a LAPIS_HOME whole over the years: what names what, backups, checks and repairs. Needs no server."""
