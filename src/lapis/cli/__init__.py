"""The command line: each command is a call into lapis.sdk, with its answer as lines for people or JSON for programs."""
