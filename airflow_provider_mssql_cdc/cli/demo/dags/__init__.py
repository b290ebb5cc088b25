"""The DAGs that only the demo runs."""
