"""The files of data sets on their way to a folder: found, cached, guarded, copied, streamed. Light."""
