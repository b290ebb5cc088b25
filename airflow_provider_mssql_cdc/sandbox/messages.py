"""SQL Server's messages by number: texts with the places of their arguments, severities, states.

Where clients match on a text it is SQL Server's; some others say the same in few words.
"""

from __future__ import annotations

MESSAGES: dict[int, str] = {
    102: "Incorrect syntax near '{}'.",
    105: "Unclosed quotation mark after the character string '{}'.",
    108: "The ORDER BY position number {} is out of range of the number of items in the select list.",
    113: "Missing end comment mark '*/'.",
    116: "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
    117: "The object name contains more than the maximum number of prefixes.",
    134: "The variable name '{}' has already been declared.",
    137: 'Must declare the scalar variable "{}".',
    141: "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.",
    145: "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.",
    147: "An aggregate may not appear in the WHERE clause.",
    148: "Incorrect time syntax in time string '{}' used with WAITFOR.",
    155: "'{}' is not a recognized datepart option.",
    156: "Incorrect syntax near the keyword '{}'.",
    164: "Each GROUP BY expression must contain at least one column that is not an outer reference.",
    168: "The floating point value '{}' is out of the range of computer representation (8 bytes).",
    174: "The {} function requires {} argument(s).",
    178: "A RETURN statement with a return value cannot be used in this context.",
    189: "The {} function requires {} to {} arguments.",
    195: "'{}' is not a recognized {}.",
    201: "Procedure or function '{}' expects parameter '{}', which was not supplied.",
    205: (
        "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in"
        " their target lists."
    ),
    206: "Operand type clash: {} is incompatible with {}",
    207: "Invalid column name '{}'.",
    208: "Invalid object name '{}'.",
    209: "Ambiguous column name '{}'.",
    213: "Column name or number of supplied values does not match table definition.",
    214: "Procedure expects parameter '{}' of type 'ntext/nchar/nvarchar'.",
    217: ("Maximum stored procedure, function, trigger, or view nesting level exceeded (limit {})."),
    226: "{} statement not allowed within multi-statement transaction.",
    229: "The {} permission was denied on the object '{}', database '{}', schema '{}'.",
    240: 'Types don\'t match between the anchor and the recursive part in column "{}" of recursive query "{}".',
    252: "Recursive common table expression '{}' does not contain a top-level UNION ALL operator.",
    257: "Implicit conversion from data type {} to {} is not allowed. Use the CONVERT function to run this query.",
    259: "Ad hoc updates to system catalogs are not allowed.",
    262: "{} permission denied in database '{}'.",
    264: "The column name '{}' is specified more than once in the SET clause or column list of an INSERT.",
    271: (
        'The column "{}" cannot be modified because it is either a computed column or is the result of a UNION '
        "operator."
    ),
    272: "Cannot update a timestamp column.",
    273: "Cannot insert an explicit value into a timestamp column.",
    306: (
        "The text, ntext, and image data types cannot be compared or sorted, except when using IS NULL or LIKE "
        "operator."
    ),
    297: "The user does not have permission to perform this action.",
    300: "{} permission was denied on object 'server', database 'master'.",
    308: "Index '{}' on table '{}' (specified in the FROM clause) does not exist.",
    313: "An insufficient number of arguments were supplied for the procedure or function {}.",
    402: "The data types {} and {} are incompatible in the {} operator.",
    447: "Expression type {} is invalid for COLLATE clause.",
    428: "Insert bulk cannot be used in a multi-statement batch.",
    448: "Invalid collation '{}'.",
    468: 'Cannot resolve the collation conflict between "{}" and "{}" in the equal to operation.',
    512: "Subquery returned more than 1 value. This is not permitted when the subquery is used as an expression.",
    515: "Cannot insert the value NULL into column '{}', table '{}'; column does not allow nulls. {} fails.",
    529: "Explicit conversion from data type {} to {} is not allowed.",
    544: "Cannot insert explicit value for identity column in table '{}' when IDENTITY_INSERT is set to OFF.",
    628: "Cannot issue SAVE TRANSACTION when there is no active transaction.",
    650: "You can only specify the READPAST lock in the READ COMMITTED or REPEATABLE READ isolation levels.",
    911: "Database '{}' does not exist. Make sure that the name is entered correctly.",
    916: 'The server principal "{}" is not able to access the database "{}" under the current security context.',
    924: "Database '{}' is already open and can only have one user at a time.",
    1001: "Line {}: Length or precision specification {} is invalid.",
    1002: "Line {}: Specified scale {} is invalid.",
    1007: "The number '{}' is out of the range for numeric representation (maximum precision 38).",
    1038: (
        "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For"
        ' other statements, look for empty alias names. Aliases defined as "" or [] are not allowed. Change the alias'
        " to a valid name."
    ),
    1060: "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.",
    1087: 'Must declare the table variable "{}".',
    1088: 'Cannot find the object "{}" because it does not exist or you do not have permissions.',
    1205: (
        "Transaction (Process ID {}) was deadlocked on lock resources with another process and has been chosen as the "
        "deadlock victim. Rerun the transaction."
    ),
    1222: "Lock request time out period exceeded.",
    1505: (
        "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name '{}' and "
        "the index name '{}'."
    ),
    1702: "{} failed because column '{}' in table '{}' exceeds the maximum of {} columns.",
    1718: "Change tracking must be enabled on database '{}' before it can be enabled on table '{}'.",
    1731: (
        "Cannot create the sparse column '{}' in the table '{}': it must be nullable, without IDENTITY, default or "
        "expression, and not of the types text, ntext, image and timestamp."
    ),
    1779: "Table '{}' already has a primary key defined on it.",
    1781: "Column already has a DEFAULT bound to it.",
    1801: "Database '{}' already exists. Choose a different database name.",
    1902: "Cannot create more than one clustered index on table '{}'.",
    1911: "Column name '{}' does not exist in the target table or view.",
    2601: "Cannot insert duplicate key row in object '{}' with unique index '{}'. The duplicate key value is ({}).",
    2627: (
        "Violation of {} constraint '{}'. Cannot insert duplicate key in object '{}'. The duplicate key value is ({})."
    ),
    2705: "Column names in each table must be unique. Column name '{}' in table '{}' is specified more than once.",
    2714: "There is already an object named '{}' in the database.",
    2715: "Column, parameter, or variable #1: Cannot find data type {}.",
    2716: "Column, parameter, or variable #1: Cannot specify a column width on data type {}.",
    2732: "Error number {} is invalid. {}",
    2738: (
        "A table can only have one timestamp column. Because table '{}' already has one, the column '{}' cannot be "
        "added."
    ),
    2744: "Multiple identity columns specified for table '{}'.",
    2750: "Column or parameter #1: Specified column precision {} is invalid.",
    2751: "Column or parameter #1: Specified column scale {} exceeds the precision.",
    2754: (
        "Error severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH "
        "LOG option."
    ),
    2760: 'The specified schema name "{}" either does not exist or you do not have permission to use it.',
    2786: "The data type of substitution parameter {} does not match the expected type of the format specification.",
    2812: "Could not find stored procedure '{}'.",
    3617: "The operation was cancelled by the client.",
    3701: "Cannot drop the {} '{}', because it does not exist or you do not have permission.",
    3702: 'Cannot drop database "{}" because it is currently in use.',
    3708: "Cannot drop the database '{}' because it is a system database.",
    3723: (
        "An explicit DROP INDEX is not allowed on index '{}.{}'. It is being used for PRIMARY KEY constraint "
        "enforcement."
    ),
    3724: "Cannot {} the table '{}' because it is being used for replication.",
    3727: "Could not drop constraint. See previous errors.",
    3728: "'{}' is not a constraint.",
    3729: "Cannot drop schema '{}' because it is being referenced by object '{}'.",
    3735: "The primary key constraint '{}' on table '{}' cannot be dropped while change tracking is enabled on it.",
    3902: "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
    3903: "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
    3952: (
        "Snapshot isolation transaction failed accessing database '{}' because snapshot isolation is not allowed in "
        "this database. Use ALTER DATABASE to allow snapshot isolation."
    ),
    3960: (
        "Snapshot isolation transaction aborted due to update conflict: the database was changed by another "
        "transaction after the snapshot was taken."
    ),
    3961: (
        "Snapshot isolation transaction failed in database '{}' because the object accessed by the statement has been "
        "modified by a DDL statement in another concurrent transaction since the start of this transaction. It is "
        "disallowed because the metadata is not versioned."
    ),
    4022: "Bulk load data was expected but not sent. The batch will be terminated.",
    4060: 'Cannot open database "{}" requested by the login. The login failed.',
    4104: 'The multi-part identifier "{}" could not be bound.',
    4112: "The function '{}' must have an OVER clause with ORDER BY.",
    4121: 'Cannot find either column "{}" or the user-defined function or aggregate "{}", or the name is ambiguous.',
    4127: "At least one of the arguments to COALESCE must be an expression that is not NULL.",
    4145: "An expression of non-boolean type specified in a context where a condition is expected.",
    4711: "Table '{}' is tracked by Change Data Capture and cannot be truncated.",
    4804: (
        "While reading current row from host, a premature end-of-message was encountered--an incoming data stream was "
        "interrupted when the server expected to see more data. The host program may have terminated. Ensure that you "
        "are using a supported client application programming interface (API)."
    ),
    4815: "Received an invalid column length from the bcp client for colid {}.",
    4816: "Invalid column type from bcp client for colid {}.",
    4817: "Could not bulk load. The sorted column '{}' is not valid. The ORDER hint is ignored.",
    4818: "Could not bulk load. The sorted column '{}' was specified more than once. The ORDER hint is ignored.",
    4819: (
        "Cannot bulk load. The bulk data stream was incorrectly specified as sorted or the data violates a uniqueness "
        "constraint imposed by the target table. Sort order incorrect for the following two rows: primary key of first "
        "row: {}, primary key of second row: {}."
    ),
    4891: "Insert bulk failed due to a schema change of the target table.",
    4895: "Unicode data is odd byte size for column {}. Should be even byte size.",
    4901: (
        "ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified. "
        "Column '{}' cannot be added to non-empty table '{}'."
    ),
    4902: 'Cannot find the object "{}" because it does not exist or you do not have permissions.',
    4924: "ALTER TABLE failed because column '{}' does not exist in table '{}'.",
    4928: "Cannot alter column '{}' because it is '{}'.",
    4996: "Change tracking is already enabled for table '{}'.",
    4997: "Cannot enable change tracking on table '{}': it has no primary key.",
    4998: "Change tracking is not enabled on table '{}'.",
    4999: "Cannot enable change tracking on table '{}': its primary key has a column of type timestamp.",
    5011: (
        "User does not have permission to alter database '{}', the database does not exist, or the database is not in "
        "a state that allows access checks."
    ),
    5061: ("ALTER DATABASE failed because a lock could not be placed on database '{}'. Try again later."),
    5069: "ALTER DATABASE statement failed.",
    5074: "The object '{}' is dependent on column '{}'.",
    5088: "Change tracking is already enabled for database '{}'.",
    5089: "Change tracking is disabled for database '{}'; its settings cannot be changed.",
    5090: "Database '{}' is a system database; its change tracking settings cannot be changed.",
    5091: "Change tracking option '{}' was specified more than once.",
    5092: "The change tracking retention must be between 1 and 2147483647 minutes.",
    6401: "Cannot roll back {}. No transaction or savepoint of that name was found.",
    7999: "Could not find any index named '{}' for table '{}'.",
    7139: "LOB value of {} bytes is longer than the configured max text repl size of {} bytes.",
    8102: "Cannot update identity column '{}'.",
    8106: "Table '{}' does not have the identity property. Cannot perform SET operation.",
    8111: "Cannot define PRIMARY KEY constraint on nullable column in table '{}'.",
    8114: "Error converting data type nvarchar to int.",
    8115: "Arithmetic overflow error converting {} to data type {}.",
    8116: "Argument data type {} is invalid for argument {} of {} function.",
    8117: "Operand data type {} is invalid for {} operator.",
    8120: (
        "A column is invalid in the select list because it is not contained in either an aggregate function or the "
        "GROUP BY clause."
    ),
    8144: "Procedure or function {} has too many arguments specified.",
    8145: "{} is not a parameter for procedure {}.",
    8152: "String or binary data would be truncated.",
    8154: "The table '{}' is ambiguous.",
    8155: "No column name was specified for column 1 of '{}'.",
    8158: "'{}' has more columns than were specified in the column list.",
    8164: "An INSERT EXEC statement cannot be nested.",
    8178: "The parameterized query '({}){}' expects the parameter '@{}', which was not supplied.",
    8179: "Could not find prepared statement with handle {}.",
    9810: "The datepart {} is not supported by date function {} for data type {}.",
    10704: (
        "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside "
        "a CATCH block, or add error parameters to the THROW statement."
    ),
    10709: "The number of columns for each row in a table value constructor must be the same.",
    14261: "The specified {} ('{}') already exists.",
    15007: "'{}' is not a valid login or you do not have permission.",
    15009: "The object '{}' does not exist in database '{}' or is invalid for this operation.",
    15023: "User, group, or role '{}' already exists in the current database.",
    15025: "The server principal '{}' already exists.",
    15051: "Cannot rename the table because it is published for replication.",
    15129: "'{}' is not a valid value for configuration option '{}'.",
    15144: "The role has members. It must be empty before it can be dropped.",
    15151: "Cannot {} the {} '{}', because it does not exist or you do not have permission.",
    15247: "User does not have permission to perform this action.",
    15248: "Either the parameter @objname is ambiguous or the claimed @objtype is wrong.",
    15250: "The database name component of the object qualifier must be the name of the current database.",
    15284: "The database principal has granted or denied permissions to objects in the database and cannot be dropped.",
    15335: "The new name '{}' is already in use as a object name and would cause a duplicate that is not permitted.",
    15406: "Cannot execute as the server principal {}",
    15517: "Cannot execute as the database principal {}",
    15530: 'The object with name "{}" already exists.',
    18054: (
        "Error {}, severity {}, state {} was raised, but no message with that error number was found in sys.messages."
        " If error is larger than 50000, make sure the user-defined message is added using sp_addmessage."
    ),
    18456: "Login failed for user '{}'.",
    22022: "SQL Server Agent refuses to {} job '{}': {}.",
    22101: "The bitmask for CHANGE_TRACKING_IS_COLUMN_IN_MASK is not one that CHANGETABLE returned.",
    22102: "Invalid arguments for CHANGETABLE(CHANGES ...).",
    22103: "Invalid arguments for CHANGETABLE(VERSION ...).",
    22104: "A table returned by the CHANGETABLE function must be aliased.",
    22105: "Change tracking is not enabled on table '{}'.",
    22106: "The CHANGETABLE function does not support remote data sources.",
    22107: "Object '{}' is not a user table; CHANGETABLE takes user tables only.",
    22108: "The CHANGE_TRACKING_CONTEXT WITH clause cannot be used with a SELECT statement.",
    22109: "The CHANGE_TRACKING_CONTEXT is not varbinary of at most 128 bytes.",
    22110: "The number of columns in CHANGETABLE(VERSION ...) is not that of the primary key of table '{}'.",
    22111: "Column '{}' in CHANGETABLE(VERSION ...) is not part of the primary key of table '{}'.",
    22112: "Column '{}' is specified more than once in CHANGETABLE(VERSION ...).",
    22114: "Change tracking options cannot be combined with other ALTER DATABASE options.",
    22115: "Change tracking is enabled for one or more tables of database '{}'; disable it there first.",
    22117: "Change tracking is not supported on a secondary replica; ask the primary.",
    22119: "Cannot enable change tracking on table '{}': its primary key is disabled.",
    22836: "The job metadata in msdb.dbo.cdc_jobs could not be updated: a {} job exists already.",
    22838: "Index '{}' of table '{}.{}' has a nullable column and cannot identify rows.",
    22850: "@threshold must be positive.",
    22851: "Low-water marks of database '{}' could not be raised by '{}': error {}, '{}'.",
    22852: "Change rows below the low-water marks of database '{}' could not be deleted by '{}': error {}, '{}'.",
    22853: "Time mappings of database '{}' could not be deleted by '{}': error {}, '{}'.",
    22859: "The log scan could not process the log records of a transaction.",
    22854: "Table '{}' has a column set, or would get one, which Change Data Capture does not support.",
    22865: "Index '{}' of table '{}.{}' has more than 14 columns, too many for net changes.",
    22874: "Extended DDL handling is not available.",
    22891: "Change Data Capture cannot be enabled in database '{}': delayed durability is set for it.",
    22892: "Delayed durability cannot be set for a database while Change Data Capture is enabled in it.",
    22901: "Database '{}' is not enabled for Change Data Capture.",
    22902: "The caller must be a member of sysadmin.",
    22903: "Another connection (session {}) is already running the log scan for this database.",
    22904: "The caller must be a member of db_owner.",
    22905: "Database '{}' is already enabled for Change Data Capture.",
    22906: "Database '{}' has a user or schema named cdc already.",
    22907: "@role_name is empty; NULL means that no role gates the access.",
    22910: "Cleanup failed: database '{}' is not enabled for Change Data Capture.",
    22914: "DDL in a database with Change Data Capture needs sysadmin, db_owner or db_ddladmin.",
    22920: "Capture instance '{}' does not exist in database '{}'.",
    22925: "Too many columns to capture: {}; at most {} are possible.",
    22926: "Capture instance name '{}' is already in use in this database.",
    22927: "Capture instance name '{}' is longer than 100 characters.",
    22928: "Index '{}' is not an index of table '{}.{}'.",
    22929: "Index '{}' of table '{}.{}' is neither its primary key nor unique.",
    22931: "Source table '{}.{}' does not exist in this database.",
    22932: "Capture instance name '{}' is not a valid identifier.",
    22939: "Net changes need a primary key or @index_name.",
    22942: "The captured column list does not map to columns of table '{}.{}'.",
    22943: "The captured column list lacks key columns that net changes need.",
    22956: "No low-water mark can be found for capture instance '{}'.",
    22957: "LSN {} lies outside the validity interval of capture instance '{}', {} to {}.",
    22960: "Capture instance '{}' does not belong to table '{}.{}'.",
    22962: "Table '{}.{}' already has two capture instances.",
    22963: "Parameter {} must not be NULL or empty.",
    22964: "LSN {} is not a start_lsn in cdc.lsn_time_mapping.",
    22965: "A quoted name in the captured column list is not terminated.",
    22970: "@maxscans must be positive.",
    22972: "@source_schema and @source_name must be given together.",
    22973: "Filegroup '{}' does not exist in database '{}'.",
    22974: "Tables of schema cdc cannot be tracked.",
    22975: "A column of table '{}' has a name that is reserved for change tables.",
    22976: "Column '{}' of change table 'cdc.{}' could not be altered to {}: {}.",
    22979: "Unique index '{}' of table '{}' is used by Change Data Capture; its constraint stays.",
    22980: "Index '{}' of table '{}.{}' is disabled.",
    22981: "Object does not exist or access is denied.",
    22983: "Unique index '{}' of table '{}' is used by Change Data Capture; it cannot be altered or dropped.",
    22985: "Table '{}.{}' is not enabled for Change Data Capture.",
    22988: "Change data capture is not available in this edition: {}.",
    22989: "Database '{}' cannot have Change Data Capture.",
    22990: "The polling interval must be between 0 and 86399 seconds.",
    22991: "@maxtrans must be positive.",
    22992: "'{}' is not a job type; capture and cleanup are.",
    22994: "@retention must be between 1 and 52594800 minutes.",
    22995: "@retention and @threshold do not apply to the capture job.",
    22996: "@maxtrans, @maxscans, @continuous and @pollinginterval do not apply to the cleanup job.",
    22997: "The {} job has no row in msdb.dbo.cdc_jobs.",
    22998: "@continuous must be 0 or 1.",
    22999: "A polling interval needs a continuous scan.",
    35100: (
        "Error number {} in the THROW statement is outside the valid range. Specify an error number in the valid "
        "range of 50000 to 2147483647."
    ),
}

# what severity 10 says where it is another text
NOTICES = {
    22022: "Job '{}' was created but not started: SQL Server Agent is not running.",
    22969: "Net changes cannot evaluate update masks while the server option clr enabled is 0.",
}

# those that differ from severity 16 and state 1
SEVERITIES = {
    **dict.fromkeys((3617, 3701, 4060, 15248, 15335), 11),
    1205: 13,
    4815: 17,
    4895: 21,
    **dict.fromkeys((229, 262, 300, 916, 2601, 2627, 5011, 18456), 14),
    **dict.fromkeys(
        (102, 105, 108, 113, 117, 134, 137, 141, 145, 147, 148, 155, 156, 164, 168, 174, 178, 189, 195), 15
    ),
    **dict.fromkeys((5091, 5092), 15),
    **dict.fromkeys((1001, 1002, 1007, 1038, 1060, 1087, 4112, 4145, 8154, 10704), 15),
}
STATES = {
    137: 2, 201: 4, 206: 2, 214: 2, 226: 6, 229: 5, 257: 3, 306: 2, 313: 3, 515: 2, 529: 2, 1038: 5, 1087: 2,
    1205: 51, 1222: 51, 1779: 0, 1801: 3, 1902: 3, 2705: 3, 2714: 6, 2744: 2, 2812: 62, 3701: 5, 3702: 3, 3723: 4,
    8114: 5, 8115: 2, 8144: 2, 8145: 2, 35100: 10,
}  # fmt: skip
