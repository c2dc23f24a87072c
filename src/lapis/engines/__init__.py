"""Engines start and stop agents, and know nothing else."""
