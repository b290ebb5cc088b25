"""The rules, as plain typed Python: positions, windows, schemas, checkpoints, plans and job specs."""
