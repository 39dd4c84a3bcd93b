"""Bad input for every API in every version: requests made from the schemas, then broken, from a seed.

`python -m tests.fuzz --mutations 2000 --seed 1` shows the whole run; `make test` has a smaller share of it.
`--listener controller` and `--listener dynamic-controller` aim at what only the controller listener serves.
"""
