"""The server: routes over control over store and engines. `app.py` is the composition root."""
