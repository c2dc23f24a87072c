"""Environments and what they are made of."""
