"""Copies of a table's rows: chunks of keys, the windows that are kept beside them, and the folder that holds both."""
