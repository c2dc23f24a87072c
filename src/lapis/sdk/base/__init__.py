"""What all handles share: how they show themselves, names looked up late, names that are missing."""
