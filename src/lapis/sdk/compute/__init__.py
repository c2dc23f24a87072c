"""Compute targets."""
