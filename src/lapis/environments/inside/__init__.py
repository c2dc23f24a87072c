"""What runs inside an environment's own Python, any from 3.7: shims for old code, bytecode. Light."""
