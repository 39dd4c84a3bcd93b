"""Output to a terminal: tables, JSON and escaped text; and Ctrl-C, its way back."""
