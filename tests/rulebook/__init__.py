"""The rule book and its citations: `docs/protocol.md` and `docs/behaviours.md`, and everything that cites them.

`python -m tests.rulebook` checks that they fit together (part of `make check`); with `--write` it writes `docs/rules.md` first.
"""
