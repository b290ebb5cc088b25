"""What tests use and is no test."""
