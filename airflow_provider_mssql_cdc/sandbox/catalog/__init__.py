"""What the server says of itself: sys, cdc, msdb and INFORMATION_SCHEMA views, metadata procedures, error texts."""
