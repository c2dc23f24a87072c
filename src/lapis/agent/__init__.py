"""The agent: one process per node of a run. Prepares, launches, ships what the run writes, and says how it ended."""
