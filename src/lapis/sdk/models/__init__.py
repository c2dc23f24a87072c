"""Registered models, and the services that answer with them."""
