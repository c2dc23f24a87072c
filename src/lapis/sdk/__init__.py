"""What scripts and notebooks hold: Azure-shaped handles over a thin client. Standard library only."""
