"""Models that serve without a line of code: one module for each kind of file, imported in the model's environment.

Each has `load(model, sample)`: a Runtime (see lapis.scoring.tensors) from a file or a folder.
"""
