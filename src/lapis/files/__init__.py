"""The files of data sets on their way to a folder: found, cached, guarded, copied, streamed. Light."""

from lapis.later import load_late

load_late(__name__)
