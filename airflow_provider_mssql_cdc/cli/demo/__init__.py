"""``mssql-cdc demo``: the whole way from SQL Server to the lake, run and compared."""
