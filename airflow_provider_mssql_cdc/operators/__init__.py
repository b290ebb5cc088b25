"""Operators: plan, submit one Spark application, believe its receipt, move the checkpoints."""
