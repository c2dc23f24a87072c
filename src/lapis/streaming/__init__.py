"""The process that streams remote files: a read-only file system over ranged reads and the shared cache."""
