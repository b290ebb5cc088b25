"""An embedded SQL Server stand-in that speaks TDS over loopback: a test tool, not a database."""
