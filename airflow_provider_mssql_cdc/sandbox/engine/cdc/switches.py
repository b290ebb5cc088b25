"""The points on which SQL Server's behaviour is not known for certain, or depends on its settings."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal

TimeToLsn = Literal["nearest", "first", "extreme"]
EqualKeys = Literal["as delete and insert", "as update", "unmasked"]


@dataclass(frozen=True, slots=True)
class Switches:
    """What a database answers where the documentation leaves more than one answer.

    :param lsn_wraps: whether increment and decrement wrap around at all-FF and all-00, or give NULL
    :param deferred_pair_shares_command_id: whether the delete and the insert of a key update of one row share a
        ``__$command_id``; a statement that updates the keys of several rows never does, since its deletes all come
        before its inserts
    :param has_command_ids: whether change tables have ``__$command_id``: since the update for KB3030352
    :param command_ids_count_across_tables: whether the ``__$command_id`` of a transaction goes on from one table to the
        next, as it does from one instance of a table to the other (measured), or begins anew for each
    :param unchanged_keys_are_captured: whether an update that assigns a key its own value is captured as 1 and 2, as
        one that changes it is, or only for what other columns changed
    :param equal_keys_are_captured: how an update is captured that changes a key to an equal text: in case, width or
        blanks at the end alone. ``as delete and insert``, as other key updates; ``as update``, with the key's bit in
        the mask; ``unmasked``, as an update without it
    :param trace_flag_8207: whether a key update of a single row is captured as 3 and 4 (documented trace flag)
    :param after_images_leave_lobs_out: whether a LOB that an update did not change is NULL in the after image, too,
        and not in the before image alone (docs)
    :param cleanup_unknown_instance_error: what sp_cdc_cleanup_change_table says of an unknown instance, 22956 or 22920
    :param second_job_error: what sp_cdc_add_job says of a job that there is already, 22836 or what msdb's sp_add_job
        says, 14261
    :param tracked_tables_stay: whether sp_rename, ALTER SCHEMA ... TRANSFER and DROP TABLE refuse a tracked table as
        they refuse a replicated one (15051, 3724)
    :param ddl_time_rounds: whether ``ddl_time`` is the minute that is nearest to the commit, or the one it lies in
    :param columns_before_range_error: whether a SELECT of a function with a bad range sends its columns before 313
    :param min_lsn_null_until_captured: whether min LSN is NULL while max LSN is below the start of a new instance
    :param held_back_scans_are_empty: whether scans that may not deliver yet, in an availability group whose replica is
        down, count as empty ones
    :param net_changes_by_default: whether @supports_net_changes = NULL means 1 on a table with a key (docs: yes)
    :param help_repeats_index_columns: whether sp_cdc_help_change_data_capture shows the index columns of the row
        before where an instance has no index (measured on 2025)
    :param default_maxtrans: @maxtrans of a new capture job; 500, or 10000 on 2025
    :param default_scan_maxscans: @maxscans of sp_cdc_scan; 10, or 100 on 2025
    :param default_threshold: @threshold of a new cleanup job; 5000, or 4999 on 2025
    :param clr_enabled: server option ``clr enabled``; without it the net function has no update masks
    :param time_to_lsn_takes: what sys.fn_cdc_map_time_to_lsn takes of the rows on the side of a time that its operator
        names. ``nearest``: the one of the nearest time; of equal times the largest LSN for 'largest', the smallest for
        'smallest'. ``first``: the one of the nearest time, and of equal times the smallest LSN. ``extreme``: the
        largest LSN of them all for 'largest', the smallest for 'smallest': another one where the clock went back
    :param dummy_tran_id: tran_id of dummy rows: some zero bytes, of which SQL Server's comparison sees no number
    :param dummy_interval: how long an idle database keeps its last mapping row before the capture adds a dummy one
    """

    lsn_wraps: bool = False
    deferred_pair_shares_command_id: bool = False
    has_command_ids: bool = True
    command_ids_count_across_tables: bool = True
    unchanged_keys_are_captured: bool = False
    equal_keys_are_captured: EqualKeys = "as delete and insert"
    trace_flag_8207: bool = False
    after_images_leave_lobs_out: bool = False
    cleanup_unknown_instance_error: int = 22956
    second_job_error: int = 22836
    tracked_tables_stay: bool = False
    ddl_time_rounds: bool = False
    columns_before_range_error: bool = False
    min_lsn_null_until_captured: bool = False
    held_back_scans_are_empty: bool = True
    net_changes_by_default: bool = True
    help_repeats_index_columns: bool = False
    default_maxtrans: int = 500
    default_scan_maxscans: int = 10
    default_threshold: int = 5000
    clr_enabled: bool = False
    time_to_lsn_takes: TimeToLsn = "nearest"
    dummy_tran_id: bytes = b"\x00"
    dummy_interval: datetime.timedelta = datetime.timedelta(minutes=5)
