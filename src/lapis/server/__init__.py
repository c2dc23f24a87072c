"""The server: one FastAPI app over control over store and engines. `app.py` is the composition root."""
