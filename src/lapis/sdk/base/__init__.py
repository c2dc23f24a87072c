"""What all handles share: how they show themselves, names looked up late, names that are missing."""

from lapis.later import load_late

load_late(__name__)
