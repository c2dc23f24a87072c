"""Pages for people: server-rendered, no build step, nothing from outside."""
