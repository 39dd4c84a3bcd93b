"""Which cluster a command talks to, with which client settings, and the connection to it."""
