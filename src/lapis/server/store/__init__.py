"""What is kept, and nothing about what it means."""
