import dataclasses
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure, Identity, SinkState
from airflow_provider_mssql_cdc.core.choice import Choice
from airflow_provider_mssql_cdc.core.exceptions import (
    GapError,
    KeyRequiredError,
    RestoredError,
    SchemaChangedError,
    UnsupportedColumnError,
)
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange, FeedRef, Probe
from airflow_provider_mssql_cdc.core.feed_choice import choose_feed
from airflow_provider_mssql_cdc.core.key import check_suited, choose_key
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness
from airflow_provider_mssql_cdc.core.plan import (
    Candidate,
    NotYet,
    assess,
)
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.resting import Turn
from airflow_provider_mssql_cdc.core.schema import KeptSchema, unknown_schema
from airflow_provider_mssql_cdc.core.standing import is_stale, quiet_checkpoint
from airflow_provider_mssql_cdc.core.steps import checkpoint_steps
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import TableOptions
from airflow_provider_mssql_cdc.core.table_spec import table_spec
from airflow_provider_mssql_cdc.core.target import Target
from tests.support.core.states import checkpoint_of

ORDERS = TableName("sales", "orders")
IDENTITY = Identity("mssql_default", "shop", ORDERS, "iceberg://lake/shop")
DAY = datetime.datetime(2026, 3, 1)
OPTIONS = TableOptions(Target.parse("iceberg://lake/shop"), ("mirror", "history"))
RESNAPSHOT = dataclasses.replace(OPTIONS, on_gap=("copy",))
COLUMNS = (Column(1, 1, "id", "int", 4, 10, nullable=False), Column(2, 2, "note", "nvarchar", -1))


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


def instance(name="sales_orders", object_id=11, day=0, min_lsn=10, **fields) -> CaptureInstance:
    return CaptureInstance(
        **{
            "name": name,
            "object_id": object_id,
            "source": ORDERS,
            "source_object_id": 1,
            "create_date": DAY + datetime.timedelta(days=day),
            "start_lsn": lsn(10),
            "min_lsn": None if min_lsn is None else lsn(min_lsn),
            "columns": COLUMNS,
            "primary_key": ("id",),
            "index_key": ("id",),
            **fields,
        }
    )


FIRST = instance()
SCHEMA = TableSchema(COLUMNS, ("id",))


def checkpoint(mirror=50, history=50, witness=None, of=FIRST, **fields) -> Checkpoint:
    sinks = {
        shape: SinkState(lsn(position), lsn(position), witness or Witness(lsn(position), DAY))
        for shape, position in (("mirror", mirror), ("history", history))
        if position is not None
    }
    return checkpoint_of(IDENTITY, sinks, FeedRef.of(of), SCHEMA.hash, **fields)


def log_history(max_lsn=100, min_mapped=5, mapped=None) -> LogHistory:
    return LogHistory(
        None if max_lsn is None else lsn(max_lsn),
        None if min_mapped is None else lsn(min_mapped),
        {lsn(50): DAY} if mapped is None else mapped,
    )


def verdict(
    stored=None, instances=(FIRST,), history=None, ddl=(), upto=90, options=OPTIONS, key=None, turn=None, kept=None
):
    return assess(
        ORDERS,
        list(instances),
        stored,
        Probe(
            None if upto is None else lsn(upto),
            {},
            {instance.object_id: instance.readable_from for instance in instances},
            lineage=history or log_history(),
        ),
        list(ddl),
        dataclasses.replace(options, key=tuple(key or ())),
        kept=kept or {SCHEMA.hash: KeptSchema.of(SCHEMA)}.get,
        turn=turn,
    )


def needs_load(candidate, upto, has_events, options=OPTIONS):
    """Whether a job has to do something for a table."""
    newest = {candidate.feed.name: upto} if has_events else {}
    probe = Probe(upto, newest, {candidate.feed.object_id: candidate.feed.readable_from})
    return bool(checkpoint_steps(table_spec(candidate, options), probe, upto).commits)


def test_what_a_history_holds_and_partitions_concern_the_shapes_that_have_them():
    options = dataclasses.replace(
        OPTIONS,
        shapes=("mirror", "history", "transactions"),
        history=HistoryOptions(form="wide"),
        partition_by=("id",),
    )
    spec = table_spec(verdict(options=options), options)
    assert [(sink.shape, sink.history.form, sink.partition_by) for sink in spec.sinks] == [
        ("mirror", "events", ("id",)),
        ("history", "wide", ("id",)),
        ("transactions", "events", ()),
    ]


def test_what_becomes_of_deleted_rows_concerns_the_mirror_and_properties_all_tables():
    options = dataclasses.replace(
        OPTIONS, shapes=("mirror", "history", "scd2"), deletes="soft", table_properties={"write.parquet.level": "3"}
    )
    spec = table_spec(verdict(options=options), options)
    assert [(sink.shape, sink.deletes, sink.properties) for sink in spec.sinks] == [
        ("mirror", "soft", {"write.parquet.level": "3"}),
        ("history", "hard", {"write.parquet.level": "3"}),
        ("scd2", "hard", {"write.parquet.level": "3"}),
    ]


class TestFirstLoad:
    def test_a_table_without_checkpoint_is_loaded_for_the_first_time(self):
        candidate = verdict()
        assert candidate.sinks == {"mirror": None, "history": None}
        assert candidate.position is None
        assert needs_load(candidate, lsn(90), has_events=False)
        spec = table_spec(candidate, OPTIONS)
        assert [(s.shape, s.table, s.read_through, s.expects) for s in spec.sinks] == [
            ("mirror", ("lake", "shop", "sales_orders"), None, None),
            ("history", ("lake", "shop", "sales_orders_history"), None, None),
        ]

    @pytest.mark.parametrize(
        ("instances", "history", "upto"),
        [
            ([instance(min_lsn=None)], None, 90),
            ([FIRST], log_history(max_lsn=None, min_mapped=None), None),
            ([instance(min_lsn=101)], None, 90),
        ],
        ids=["min LSN NULL or zero", "nothing captured at all", "max LSN below the new instance"],
    )
    def test_a_table_just_enabled_waits(self, instances, history, upto):
        assert isinstance(verdict(None, instances, history, upto=upto), NotYet)

    def test_a_shape_added_later_is_loaded_alone(self):
        candidate = verdict(checkpoint(history=None))
        assert candidate.sinks["history"] is None
        assert candidate.sinks["mirror"].read_through == lsn(50)
        spec = table_spec(candidate, OPTIONS)
        assert [(s.read_through, s.expects) for s in spec.sinks] == [(lsn(50), lsn(50)), (None, None)]
        assert needs_load(candidate, lsn(90), has_events=False)

    def test_the_newest_instance_is_taken(self):
        newer = instance("v2", 12, day=1)
        assert choose_feed(ORDERS, [newer, FIRST], None) == newer
        assert choose_feed(ORDERS, [newer, FIRST], checkpoint(mirror=None, history=None)) == newer


class TestWindow:
    def test_a_window_starts_at_each_sinks_own_position(self):
        state = dataclasses.replace(checkpoint().sinks["history"], applied=lsn(40), read_through=lsn(60))
        stored = dataclasses.replace(checkpoint(), sinks={**checkpoint().sinks, "history": state})
        spec = table_spec(verdict(stored), OPTIONS)
        assert [(s.read_through, s.expects) for s in spec.sinks] == [(lsn(50), lsn(50)), (lsn(60), lsn(40))]

    @pytest.mark.parametrize(
        ("upto", "events", "loads"), [(90, True, True), (90, False, False), (50, True, False), (40, True, False)]
    )
    def test_spark_is_needed_only_for_events_below_the_cut(self, upto, events, loads):
        assert needs_load(verdict(checkpoint()), lsn(upto), events) is loads


class TestQuiet:
    def test_read_through_moves_and_applied_stays(self):
        witness = Witness(lsn(90), DAY)
        moved = quiet_checkpoint(verdict(checkpoint()), lsn(90), witness)
        assert moved.sinks == {
            shape: dataclasses.replace(sink, read_through=lsn(90), witness=witness)
            for shape, sink in checkpoint().sinks.items()
        }

    def test_shapes_that_the_run_did_not_look_at_stay(self):
        mirror = dataclasses.replace(OPTIONS, shapes=("mirror",))
        moved = quiet_checkpoint(verdict(checkpoint(), options=mirror), lsn(90), None)
        assert moved.sinks == {
            "mirror": dataclasses.replace(checkpoint().sinks["mirror"], read_through=lsn(90), witness=None),
            "history": checkpoint().sinks["history"],
        }

    def test_a_cut_already_passed_changes_nothing(self):
        assert quiet_checkpoint(verdict(checkpoint(), upto=50), lsn(50), None) is None
        assert quiet_checkpoint(verdict(checkpoint(), upto=40), lsn(40), None) is None

    @pytest.mark.parametrize(
        ("age", "retention", "stale"),
        [(59, None, False), (61, None, True), (59, 4320, False), (61, 4320, True), (7, 60, True), (5, 60, False)],
    )
    def test_the_variable_is_written_only_when_it_is_old(self, age, retention, stale):
        now = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
        stored = checkpoint(updated_at=now - datetime.timedelta(minutes=age))
        assert is_stale(stored, now, retention and datetime.timedelta(minutes=retention)) is stale


class TestGap:
    @pytest.mark.parametrize(("min_lsn", "lost"), [(50, False), (51, False), (52, True), (99, True)])
    def test_a_gap_is_a_min_lsn_above_the_next_position(self, min_lsn, lost):
        current = instance(min_lsn=min_lsn)
        if not lost:
            assert isinstance(verdict(checkpoint(), [current]), Candidate)
            return
        with pytest.raises(GapError, match=r"sales\.orders.*purged.*on_gap=.copy") as error:
            verdict(checkpoint(), [current])
        assert (error.value.after, error.value.readable_from) == (lsn(50), lsn(min_lsn - 1))

    def test_a_gap_of_one_sink_is_its_own(self):
        lowest = log_history(mapped={lsn(30): DAY})
        stored = checkpoint(mirror=50, history=30, witness=Witness(lsn(30), DAY))
        candidate = verdict(stored, [instance(min_lsn=40)], lowest)
        assert (list(candidate.sinks), candidate.position) == (["mirror"], lsn(50))
        ((shape, error),) = candidate.failed.items()
        assert (shape, error.after, error.readable_from) == ("history", lsn(30), lsn(39))

    def test_a_sink_that_rests_counts_for_nothing(self):
        lowest = log_history(mapped={lsn(30): DAY})
        stored = checkpoint(mirror=50, history=30, witness=Witness(lsn(30), DAY))
        turn = Turn(("mirror",), resting={"history": Failure("no", DAY)})
        candidate = verdict(stored, [instance(min_lsn=40)], lowest, turn=turn)
        assert (list(candidate.sinks), candidate.failed, candidate.position) == (["mirror"], {}, lsn(50))
        again = verdict(stored, [instance(min_lsn=20)], lowest, turn=Turn(("mirror",), ("history",)))
        assert ([*again.sinks], again.counting) == (["mirror", "history"], lsn(50)), "it lowers no cut"

    def test_a_copy_on_gap_starts_again_and_tells_where_the_gap_begins(self):
        candidate = verdict(checkpoint(), [instance(min_lsn=60)], options=RESNAPSHOT)
        assert candidate.sinks == {"mirror": None, "history": None}
        spec = table_spec(candidate, RESNAPSHOT)
        assert [(s.read_through, s.lost_after) for s in spec.sinks] == [(None, lsn(50))] * 2

    def test_a_copy_on_gap_starts_only_those_again_that_have_a_gap(self):
        candidate = verdict(checkpoint(mirror=50, history=70), [instance(min_lsn=60)], self.both, options=RESNAPSHOT)
        assert (candidate.sinks["mirror"], candidate.sinks["history"].read_through) == (None, lsn(70))
        spec = table_spec(candidate, RESNAPSHOT)
        assert [(s.shape, s.read_through, s.lost_after) for s in spec.sinks] == [
            ("mirror", None, lsn(50)),
            ("history", lsn(70), None),
        ]

    def test_a_persons_word_goes_along_though_its_changes_are_purged(self):
        stored = checkpoint()
        words = {shape: dataclasses.replace(sink, asserted=shape) for shape, sink in stored.sinks.items()}
        stored = dataclasses.replace(stored, sinks=words)
        for candidate in (verdict(stored), verdict(stored, [instance(min_lsn=60)], options=RESNAPSHOT)):
            assert [s.asserted for s in table_spec(candidate, OPTIONS).sinks] == ["mirror", "history"]

    def test_a_shape_that_is_no_longer_loaded_has_no_gap(self):
        mirror = dataclasses.replace(OPTIONS, shapes=("mirror",))
        candidate = verdict(checkpoint(mirror=70, history=50), [instance(min_lsn=60)], self.both, options=mirror)
        assert candidate.position == lsn(70)
        other = instance("v2", 12, day=1, min_lsn=60)
        stored = checkpoint(mirror=70, history=50)
        assert verdict(stored, [other], self.both, options=mirror).feed == other

    both = LogHistory(lsn(100), lsn(5), {lsn(50): DAY, lsn(70): DAY})


class TestInstance:
    def test_the_checkpoints_instance_is_kept_while_it_exists(self):
        newer = instance("v2", 12, day=1)
        assert choose_feed(ORDERS, [newer, FIRST], checkpoint()) == FIRST

    @pytest.mark.parametrize("change", [{"name": "other"}, {"object_id": 99}, {"day": 3}], ids=str)
    def test_another_instance_is_not_taken_for_it(self, change):
        other = instance(**change, min_lsn=60)
        with pytest.raises(GapError, match="was dropped"):
            choose_feed(ORDERS, [other], checkpoint())

    def test_start_lsn_says_nothing(self):
        moved = instance(start_lsn=lsn(40), min_lsn=40)
        assert choose_feed(ORDERS, [moved], checkpoint()) == moved

    @pytest.mark.parametrize(("min_lsn", "continues"), [(51, True), (52, False), (None, False)])
    def test_another_continues_if_it_reaches_back(self, min_lsn, continues):
        other = instance("v2", 12, day=1, min_lsn=min_lsn)
        if continues:
            assert choose_feed(ORDERS, [other], checkpoint()) == other
        else:
            with pytest.raises(GapError):
                choose_feed(ORDERS, [other], checkpoint())

    @pytest.mark.parametrize(("newer_min_lsn", "chosen"), [(40, 1), (51, 1), (52, 0), (90, 0)])
    def test_a_position_that_a_person_named_is_read_by_the_newest_instance_that_reaches_back_to_it(
        self, newer_min_lsn, chosen
    ):
        instances = [FIRST, instance("v2", 12, day=1, min_lsn=newer_min_lsn)]
        by_hand = checkpoint_of(IDENTITY, checkpoint().sinks)
        assert choose_feed(ORDERS, instances, by_hand) == instances[chosen]

    def test_where_none_reaches_back_to_it_there_is_a_gap(self):
        by_hand = checkpoint_of(IDENTITY, checkpoint().sinks)
        with pytest.raises(GapError):
            verdict(by_hand, instances=[instance(min_lsn=60), instance("v2", 12, day=1, min_lsn=90)])


class TestRestored:
    def test_an_unchanged_witness_passes(self):
        assert isinstance(verdict(checkpoint()), Candidate)

    def test_a_witness_older_than_the_mapping_proves_nothing(self):
        assert isinstance(verdict(checkpoint(), history=log_history(min_mapped=51, mapped={})), Candidate)

    def test_times_are_compared_within_the_rounding_of_clients(self):
        close = {lsn(50): DAY + datetime.timedelta(milliseconds=1)}
        assert isinstance(verdict(checkpoint(), history=log_history(mapped=close)), Candidate)

    @pytest.mark.parametrize(
        ("history", "why"),
        [
            (log_history(mapped={}), "is missing from cdc.lsn_time_mapping"),
            (
                log_history(mapped={lsn(50): DAY + datetime.timedelta(milliseconds=4)}),
                "stands for .* now, and stood for",
            ),
            (log_history(max_lsn=49), "the newest position of the database is"),
            (log_history(max_lsn=None, min_mapped=None), "cdc.lsn_time_mapping is empty"),
        ],
        ids=["missing", "another time", "position above max LSN", "max LSN NULL"],
    )
    def test_another_history_stops_the_table(self, history, why):
        with pytest.raises(RestoredError, match=why) as error:
            verdict(checkpoint(), history=history)
        assert "mssql-cdc checkpoint reset" in str(error.value)

    @pytest.mark.parametrize("min_mapped", [5, 90], ids=["witness mapped", "witness trimmed"])
    @pytest.mark.parametrize(
        ("then", "now", "restored"), [("A", "A", False), ("A", "B", True), (None, "B", False), ("A", None, False)]
    )
    def test_another_recovery_fork_is_another_history(self, min_mapped, then, now, restored):
        stored = checkpoint(witness=Witness(lsn(50), DAY, then))
        history = dataclasses.replace(log_history(min_mapped=min_mapped), recovery_fork=now)
        if restored:
            with pytest.raises(RestoredError, match="recovery fork was A and is B now"):
                verdict(stored, history=history)
        else:
            assert isinstance(verdict(stored, history=history), Candidate)

    def test_an_instance_without_lower_bound_beside_a_checkpoint_is_no_first_load(self):
        with pytest.raises(RestoredError, match="no lower bound"):
            verdict(checkpoint(), [instance(min_lsn=None)])


class TestSchema:
    def ddl(self, at, requires=True, of="sales_orders"):
        return DdlChange(of, "ALTER TABLE sales.orders ALTER COLUMN note nvarchar(20)", lsn(at), DAY, requires)

    @pytest.mark.parametrize(("at", "fails"), [(50, False), (51, True), (90, True), (91, False)])
    def test_ddl_within_the_window_stops_the_table_with_its_text(self, at, fails):
        if fails:
            with pytest.raises(SchemaChangedError, match=r"ALTER COLUMN note nvarchar\(20\)"):
                verdict(checkpoint(), ddl=[self.ddl(at)])
        else:
            assert isinstance(verdict(checkpoint(), ddl=[self.ddl(at)]), Candidate)

    def test_ddl_that_leaves_captured_columns_alone_passes(self):
        assert isinstance(verdict(checkpoint(), ddl=[self.ddl(60, requires=False)]), Candidate)

    def test_ddl_before_the_window_of_the_shapes_that_are_loaded_passes(self):
        mirror = dataclasses.replace(OPTIONS, shapes=("mirror",))
        stored, history = checkpoint(mirror=70, history=50), log_history(mapped={lsn(50): DAY, lsn(70): DAY})
        assert isinstance(verdict(stored, history=history, ddl=[self.ddl(60)], options=mirror), Candidate)

    def test_another_instances_ddl_does_not_count(self):
        assert isinstance(verdict(checkpoint(), ddl=[self.ddl(60, of="v2")]), Candidate)

    def test_another_hash_stops_the_table_with_both_lists(self):
        changed = instance(columns=(COLUMNS[0], dataclasses.replace(COLUMNS[1], length=40)))
        with pytest.raises(SchemaChangedError) as error:
            verdict(checkpoint(), [changed])
        assert "column note was nvarchar(-1,0,0), and is nvarchar(40,0,0)" in str(error.value)

    def test_a_column_dropped_from_the_source_is_kept_by_what_was_loaded_with_it(self):
        dropped = instance(columns=(COLUMNS[0], dataclasses.replace(COLUMNS[1], dropped=True)))
        candidate = verdict(checkpoint(), [dropped])
        assert (candidate.schema.hash, candidate.schema.kept) == (SCHEMA.hash, ("note",))
        assert [column.name for column in candidate.schema.loaded] == ["id", "note"]
        assert candidate.warnings == ("column note is NULL since the source table dropped it",)
        # where nobody knows what was loaded, or not only a column is gone, it is a change as any other
        with pytest.raises(SchemaChangedError, match=r"then: not known"):
            verdict(checkpoint(), [dropped], kept=unknown_schema)
        other = dataclasses.replace(dropped, columns=(dataclasses.replace(COLUMNS[0], type="bigint"), COLUMNS[1]))
        with pytest.raises(SchemaChangedError, match=r"column id was int.*, and is bigint"):
            verdict(checkpoint(), [other])

    def test_a_column_that_only_a_later_instance_has_is_left_out_of_what_was_loaded_without_it(self):
        more = (Column(1, 3, "more", "int", 4, 10), *(dataclasses.replace(c, ordinal=c.ordinal + 1) for c in COLUMNS))
        candidate = verdict(checkpoint(), [instance(columns=more)])
        assert (candidate.schema.hash, candidate.schema.columns) == (SCHEMA.hash, more[1:])
        left_out = f"column more of {candidate.feed.name} is left out: the targets were loaded without it"
        assert candidate.warnings == (left_out,)
        assert verdict(None, [instance(columns=more)]).schema.columns == more
        altered = DdlChange("sales_orders", "ALTER TABLE dbo.t ALTER COLUMN [more] bigint", lsn(60), None, True)
        left = verdict(checkpoint(), [instance(columns=more)], ddl=[altered])
        assert (left.ddl, [*left.failed]) == ((), [])
        both = dataclasses.replace(altered, command="ALTER TABLE dbo.t ALTER COLUMN note int /* not more */")
        with pytest.raises(SchemaChangedError, match="a captured column was changed"):
            verdict(checkpoint(), [instance(columns=more)], ddl=[both])
        # shapes that begin beside one that rests have its columns; of two that differ the run's own decides
        beside = verdict(checkpoint(history=None), [instance(columns=more)], turn=Turn(("history",)))
        assert (beside.schema.hash, [*beside.sinks]) == (SCHEMA.hash, ["history"])
        mixed = checkpoint()
        now = TableSchema(more, ("id",))
        history = dataclasses.replace(mixed.sinks["history"], schema_hash=now.hash)
        mixed = dataclasses.replace(mixed, sinks={**mixed.sinks, "history": history})
        assert verdict(mixed, [instance(columns=more)], turn=Turn(("history",))).schema.hash == now.hash
        # by which copies are to be cut it is part of what is loaded
        with pytest.raises(SchemaChangedError, match=r"column more .* was added"):
            verdict(checkpoint(), [instance(columns=more)], options=dataclasses.replace(OPTIONS, copy_by=("more",)))

    def test_what_is_loaded_for_the_first_time_leaves_a_dropped_column_out(self):
        dropped = instance(columns=(COLUMNS[0], dataclasses.replace(COLUMNS[1], dropped=True)))
        candidate = verdict(None, [dropped])
        assert [column.name for column in candidate.schema.loaded] == ["id"]
        assert candidate.warnings == ("column note is left out: the source table no longer has it",)

    @pytest.mark.parametrize(
        ("said", "by"),
        [
            ({"copy_by": ("NOTE",)}, "copy_by"),
            ({"partition_by": ("bucket(4, Note)",)}, "partition_by"),
            ({"partition_by": ("note",)}, "partition_by"),
            ({"partition_by": ("truncate(10, note__text)",)}, "partition_by"),
            ({"partition_by": ("days(remark)",), "choice": Choice(rename={"note": "remark"})}, "partition_by"),
            ({"partition_by": ("notes", "note(id)"), "choice": Choice(where=(("id", "=", 1),))}, None),
            ({"partition_by": ("note",), "choice": Choice(rename={"note": "remark", "id": "note"})}, None),
            ({"partition_by": ("note",), "choice": Choice(mask={"note": "drop"})}, None),
        ],
    )
    def test_a_dropped_column_that_decides_what_is_loaded_or_where_it_lies_fails_the_table(self, said, by):
        dropped = instance(columns=(COLUMNS[0], dataclasses.replace(COLUMNS[1], dropped=True)))
        options = dataclasses.replace(OPTIONS, **said)
        if by is None:
            stored = checkpoint()
            candidate = verdict(None, options=options)
            hashed = {"selection_hash": candidate.selection.hash}
            sinks = {shape: dataclasses.replace(sink, **hashed) for shape, sink in stored.sinks.items()}
            stored = dataclasses.replace(stored, sinks=sinks)
            found = verdict(stored, [dropped], options=options)
            assert found.schema.kept == ("note",)
            # nobody is told of a column that is left out
            assert bool(found.warnings) == ("drop" not in options.choice.mask.values())
            return
        with pytest.raises(SchemaChangedError, match=f"has dropped column note, which {by} names"):
            verdict(checkpoint(), [dropped], options=options)

    def test_uncaptured_and_computed_columns_are_warnings(self):
        columns = (*COLUMNS, Column(3, 3, "total", "int", 4, 10, computed=True))
        candidate = verdict(None, [instance(columns=columns, uncaptured=("secret",))])
        assert candidate.warnings == (
            "column secret is not captured by sales_orders",
            "computed column total is left out: CDC captures it as NULL",
        )

    def test_a_type_that_cannot_be_loaded_is_refused_before_anything_is_read(self):
        columns = (*COLUMNS, Column(3, 3, "where", "geography", -1))
        with pytest.raises(UnsupportedColumnError, match=r"'where' of type geography.*@captured_column_list"):
            verdict(None, [instance(columns=columns)])

    def test_so_are_names_that_clash_and_keys_that_cannot_be_compared(self):
        with pytest.raises(UnsupportedColumnError, match="'_op', the name of a column of the load"):
            verdict(None, [instance(columns=(*COLUMNS, Column(3, 3, "_op", "int", 4, 10)))])
        columns = (Column(1, 1, "id", "datetimeoffset", 10, 34, 7, nullable=False), COLUMNS[1])
        with pytest.raises(UnsupportedColumnError, match="'id' of type datetimeoffset is part of the key"):
            verdict(None, [instance(columns=columns)])


class TestKey:
    @pytest.mark.parametrize(
        ("fields", "user", "expected"),
        [
            ({"index_key": ("note",)}, None, (("note",), True)),
            ({"index_key": ()}, None, (("id",), True)),
            ({"index_key": (), "primary_key": ()}, ["note", "id"], (("note", "id"), False)),
            ({}, ["note"], (("id",), True)),
            ({"uncaptured": ("other",)}, ["other"], (("id",), True)),
            ({"index_key": (), "primary_key": ("uncaptured",)}, ["id"], (("id",), False)),
        ],
        ids=[
            "instance's",
            "primary key",
            "user's",
            "user's only where there is none",
            "not captured and not needed",
            "key not captured",
        ],
    )
    def test_the_instances_then_the_tables_then_the_users(self, fields, user, expected):
        assert choose_key(ORDERS, instance(**fields), user) == expected

    def test_a_mirror_without_key_is_refused(self):
        keyless = instance(index_key=(), primary_key=())
        with pytest.raises(KeyRequiredError, match=r'\{"table": "sales.orders", "key": \[\.\.\]\}'):
            verdict(instances=[keyless], options=dataclasses.replace(OPTIONS, shapes=("mirror",)))
        assert choose_key(ORDERS, keyless, None) == ((), False)

    def test_what_cannot_be_loaded_is_told_while_the_capture_is_waited_for(self):
        keyless = instance(index_key=(), primary_key=(), min_lsn=None)
        waiting = verdict(instances=[keyless], options=dataclasses.replace(OPTIONS, shapes=("mirror", "history")))
        assert isinstance(waiting, NotYet)
        assert "mirror needs a key" in str(waiting.failed["mirror"])

    def test_a_mirror_without_key_keeps_no_history_from_being_loaded(self):
        found = verdict(
            instances=[instance(index_key=(), primary_key=())],
            options=dataclasses.replace(OPTIONS, shapes=("mirror", "history")),
        )
        assert list(found.sinks) == ["history"]
        assert "mirror needs a key" in str(found.failed["mirror"])

    @pytest.mark.parametrize(
        ("columns", "uncaptured", "user", "expected"),
        [
            (("id", "note"), (), ["ID", "Note"], ("id", "note")),
            (("id", "ID"), (), ["ID"], ("ID",)),
            (("id", "note"), (), ["id", "ID"], ("id",)),
            (("id", "ID"), (), ["Id"], None),
            (("id", "note"), ("ID",), ["ID"], None),
            (("id", "note"), ("ID",), ["Id"], None),
        ],
        ids=["another case", "exact first", "named twice", "two fit", "not captured", "two fit, one not captured"],
    )
    def test_the_users_columns_may_be_spelt_in_another_case(self, columns, uncaptured, user, expected):
        made = instance(
            columns=tuple(Column(n, n, name, "int", 4, 10) for n, name in enumerate(columns, 1)),
            uncaptured=uncaptured,
            index_key=(),
            primary_key=(),
        )
        if expected is None:
            with pytest.raises(KeyRequiredError, match=f"key names {user[0]}"):
                choose_key(ORDERS, made, user)
        else:
            assert choose_key(ORDERS, made, user) == (expected, False)

    @pytest.mark.parametrize(
        ("shapes", "deletes", "refused"),
        [
            (("scd2",), "hard", "scd2"),
            (("mirror", "scd2", "history"), "soft", "scd2"),
            (("mirror",), "ignore", 'a mirror with deletes="ignore"'),
            (("mirror", "history"), "soft", None),
            (("history",), "ignore", None),
        ],
    )
    def test_a_key_that_nobody_enforces_is_too_little_where_rows_that_are_gone_stay(self, shapes, deletes, refused):
        options = dataclasses.replace(OPTIONS, shapes=shapes, deletes=deletes)
        failed = {}
        for shape in shapes:
            check_suited(ORDERS, instance(), options, shape, ["id"], enforced=True)
            try:
                check_suited(ORDERS, instance(), options, shape, ["id"], enforced=False)
            except KeyRequiredError as error:
                failed[shape] = str(error)
        if refused is None:
            assert failed == {}
        else:
            (text,) = failed.values()
            assert text.startswith(f"sales.orders: {refused} needs a key that SQL")

    def test_net_changes_need_one_too_and_what_only_grows_needs_none(self):
        keyless = [instance(index_key=(), primary_key=())]
        grows = dataclasses.replace(OPTIONS, shapes=("history", "transactions"))
        net = dataclasses.replace(grows, history=HistoryOptions("net"))
        assert verdict(instances=keyless, options=grows).schema.key == ()
        assert verdict(options=net).schema.key == ("id",)
        for key in (None, ["id"]):
            with pytest.raises(KeyRequiredError, match="changes='net' needs a key that SQL Server enforces"):
                raise verdict(instances=keyless, options=net, key=key).failed["history"]

    def test_the_users_key_must_be_captured(self):
        with pytest.raises(KeyRequiredError, match="key names nope, and the table has no such column"):
            choose_key(ORDERS, instance(index_key=(), primary_key=()), ["id", "nope"])


@given(
    events=st.sets(st.integers(11, 99), max_size=20),
    cuts=st.lists(st.integers(11, 99), min_size=1, max_size=12),
    lost_writes=st.sets(st.integers(0, 11)),
)
def test_any_sequence_of_cuts_applies_every_event_once(events, cuts, lost_writes):
    """Plan after plan over one table; some checkpoint writes are lost, and the marker heals them."""
    stored = checkpoint(mirror=10, history=None, witness=Witness(lsn(10), DAY))
    options = dataclasses.replace(OPTIONS, shapes=("mirror",))
    history = LogHistory(lsn(99), lsn(5), {lsn(10): DAY})
    applied, marker = [], 10
    for run, cut in enumerate(cuts):
        candidate = verdict(stored, history=history, upto=cut, options=options)
        position = int.from_bytes(candidate.position.value, "big")
        seen = any(position < event <= cut for event in events)
        if needs_load(candidate, lsn(cut), seen):
            sink = table_spec(candidate, options).sinks[0]
            after = max(marker, int.from_bytes(sink.read_through.value, "big"))  # rule 5: M > expects continues at M
            applied += sorted(event for event in events if after < event <= cut)
            marker = max(marker, cut)
            state = SinkState(lsn(marker), lsn(max(marker, after)), Witness(lsn(10), DAY))
            moved = dataclasses.replace(stored, sinks={"mirror": state})
        else:
            moved = quiet_checkpoint(candidate, lsn(cut), Witness(lsn(10), DAY)) or stored
        if run not in lost_writes:
            stored = moved
    assert applied == sorted(event for event in events if event <= max(marker, 0))


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_instances_that_both_are_known_the_older_one_is_read(turned):
    """The newer one need not reach back to the sink that is still on the older one."""
    newer = instance("v2", 12, day=1, min_lsn=70)
    stored = checkpoint(mirror=50, history=80)
    moved = dataclasses.replace(stored.sinks["history"], feed=FeedRef.of(newer))
    stored = dataclasses.replace(stored, sinks={**stored.sinks, "history": moved})
    instances = [newer, FIRST] if turned else [FIRST, newer]
    assert choose_feed(ORDERS, instances, stored) == FIRST


def test_without_events_a_sink_that_failed_for_good_is_not_done():
    candidate = verdict(checkpoint(mirror=50, history=50))
    spec = table_spec(candidate, OPTIONS)
    probe = Probe(lsn(90), {}, {FIRST.object_id: FIRST.readable_from})
    assert checkpoint_steps(spec, probe, lsn(90)).done.keys() == {"mirror", "history"}
    steps = checkpoint_steps(spec, probe, lsn(90), again={"mirror"})
    assert "mirror" in steps.windows
    assert "mirror" not in steps.done
