"""Values and rules, no I/O. Standard library only; runs on Python 3.7 and later."""
