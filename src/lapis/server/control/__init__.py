"""What the system does: the rules of domain/, applied to what is in store/ and what the engines say."""
