"""Object stores: what a datastore that is not a folder reads and writes through fsspec."""
