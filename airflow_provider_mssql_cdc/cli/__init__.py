"""The command ``mssql-cdc``: ``demo``, ``sandbox``, ``plan``, ``checkpoint`` and ``warm``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from airflow_provider_mssql_cdc import __version__
from airflow_provider_mssql_cdc.cli.exit import EXIT_USAGE, CommandError
from airflow_provider_mssql_cdc.core.target import TABLE_NAME

# Sandbox, Airflow and Spark are heavy to import, and each command needs only some of them.
_COMMANDS = {
    "demo": "airflow_provider_mssql_cdc.cli.demo.command",
    "sandbox": "airflow_provider_mssql_cdc.cli.sandbox",
    "plan": "airflow_provider_mssql_cdc.cli.plan",
    "checkpoint": "airflow_provider_mssql_cdc.cli.checkpoint",
    "copy": "airflow_provider_mssql_cdc.cli.copy",
    "instances": "airflow_provider_mssql_cdc.cli.instances",
    "warm": "airflow_provider_mssql_cdc.cli.warm",
}


_SANDBOX_EXTRA = frozenset({"duckdb", "numpy", "psutil", "pyarrow", "sqlglot", "trustme"})


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    root = argparse.ArgumentParser(
        prog="mssql-cdc",
        description="Load the changes of SQL Server tables into a lakehouse, from Airflow, with Spark.",
    )
    root.add_argument("--version", action="version", version=__version__)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_sandbox(commands)
    _add_plan(commands)
    _add_checkpoint(commands)
    _add_copy(commands)
    _add_instances(commands)
    commands.add_parser(
        "warm",
        help="let Spark start more quickly on this worker",
        description="Rehearse a first load and a window of changes of the SQL Server stand-in, and keep the Java "
        "classes that they use in an archive beside the jars. Loads of this user on this worker then start from it. "
        "Needs Java 17 or 21.",
    )
    return root


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="show the whole way at work: SQL Server stand-in, Airflow, Spark, Iceberg",
        description="Load a shop database into an Iceberg lake by the example DAG while the shop changes, "
        "and compare both sides. Needs Java 17 or 21.",
    )
    demo.add_argument(
        "--scenario",
        choices=["plain", "crash", "targets", "copy", "schema-change", "change-tracking"],
        default="plain",
        help="crash: Spark is killed in mid-window, then the task between commit and checkpoint; "
        "targets: one table goes into every target and shape, PostgreSQL if it is installed; copy: the copy of a big "
        "table takes several runs, is paused and killed and goes on, and a gap heals; schema-change: columns are added "
        'and filled, and one is dropped, by on_schema_change="evolve"; change-tracking: the shop is on an Express '
        "edition, without CDC, and elsewhere Change Tracking heals a gap of CDC (default: plain)",
    )
    demo.add_argument("--keep", metavar="DIR", help="keep lake, Airflow home and logs there; new or empty")
    demo.add_argument("--json", metavar="FILE", help="write the summary there")
    demo.add_argument(
        "--rows", type=_positive, help="rows to start with (default: 100000; copy: 1000000; schema-change: 10000)"
    )
    demo.add_argument("--port", type=_port, default=0, help="port of the SQL Server stand-in (default: a free one)")


def _add_sandbox(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sandbox = commands.add_parser(
        "sandbox",
        help="run a stand-in for SQL Server",
        description="Serve a stand-in for SQL Server until SIGTERM or Ctrl-C. "
        "One line of JSON on standard output says when it is ready, and how to connect.",
    )
    sandbox.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    sandbox.add_argument("--port", type=_port, default=1433, help="port to listen on, 0 for a free one (default: 1433)")
    sandbox.add_argument(
        "--database", metavar="D", type=_text, default="shop", help="database to create (default: shop)"
    )
    sandbox.add_argument("--user", metavar="U", type=_text, default="sa", help="login (default: sa)")
    sandbox.add_argument("--password", metavar="P", type=_text, help="its password (default: a random one)")
    sandbox.add_argument(
        "--capture-interval",
        metavar="S",
        type=_seconds,
        help="seconds between two scans of the capture job (default: the job's polling interval, at first 5)",
    )
    sandbox.add_argument(
        "--build",
        choices=["2016", "2019", "2022", "2025"],
        default="2022",
        help="of SQL Server; 2016 as it was before change tables had __$command_id (default: 2022)",
    )
    sandbox.add_argument(
        "--harsh",
        action="store_true",
        help="do what SQL Server only may do, such as sending rows in another order where a query asks for none",
    )
    sandbox.add_argument(
        "--harsh-seed",
        metavar="N",
        type=int,
        help="of what --harsh draws (default: a new one, printed with the address)",
    )
    sandbox.add_argument(
        "--clock-rate",
        metavar="N",
        type=_seconds,
        default=1.0,
        help="seconds of its clock in one second, and of all that waits by that clock (default: 1)",
    )
    sandbox.add_argument("--seed", choices=["shop"], help="create and fill the tables of the demo, with CDC enabled")
    sandbox.add_argument("--rows", type=_positive, default=100_000, help="rows of --seed (default: 100000)")


def _add_plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    plan = commands.add_parser(
        "plan",
        help="show what a load would do now",
        description="Show what a load would do now, table by table, by the checkpoints and the source. It goes to upto "
        "where the DAG says a position, else to the newest one; it writes nothing, and enables nothing.",
    )
    _add_load(plan)


def _add_copy(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    copy = commands.add_parser(
        "copy",
        help="ask for a copy of tables, pause it, stop it, see how far it is",
        description="Ask for a copy of a load's tables, which its next run begins: it compares the targets with the "
        "tables, and writes what differs. Or pause, resume or stop a copy, also one of a first load.",
    )
    actions = copy.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, description in (
        ("start", "ask for a copy"),
        ("pause", "read no rows for now, and go on keeping the changes beside the copy"),
        ("resume", "go on with a paused copy"),
        ("stop", "end a copy and remove what it has read"),
        ("status", "show what is asked for, and how far copies are"),
    ):
        action = _add_action(actions, name, description)
        _add_load(action)
        if name == "start":
            action.add_argument(
                "--where",
                metavar="JSON",
                help="compare only the rows that fulfil these conditions, written as an entry's where: "
                '[["status", "in", ["paid", "sent"]]]',
            )


def _add_instances(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    instances = commands.add_parser(
        "instances",
        help="see, make and drop the capture instances of a load's tables",
        description="See which capture instances a load's tables have, and which checkpoints of this Airflow stand on "
        "them; make those that the load asks for, or drop one that no checkpoint needs.",
    )
    actions = instances.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, description in (
        ("list", "list the capture instances, with the checkpoints that stand on each"),
        ("apply", "make the capture instances that the load asks for, to have columns that were added"),
        ("drop", "drop a capture instance on which no checkpoint stands, with all that it holds"),
    ):
        action = _add_action(actions, name, description)
        _add_load(action, one_table=name == "drop")
        if name == "drop":
            action.add_argument("--instance", metavar="NAME", required=True, help="capture instance")


def _add_checkpoint(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    checkpoint = commands.add_parser(
        "checkpoint",
        help="see and correct how far tables are loaded",
        description="Work on the checkpoints in the Airflow environment in which this command runs.",
    )
    actions = checkpoint.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list all checkpoints")
    listed.add_argument(
        "--json", action="store_true", help="as they are stored, for `airflow variables import`: a backup"
    )
    for name, description in (
        ("show", "print one checkpoint as JSON"),
        ("set", "name the position up to which a table is loaded"),
        ("reset", "forget how far a table is loaded"),
        ("rename", "go on with a source table that was renamed, or moved to another schema"),
    ):
        action = _add_action(actions, name, description)
        action.add_argument("--conn", default="mssql_default", help="Airflow connection id (default: mssql_default)")
        action.add_argument("--database", required=True, help="source database")
        action.add_argument("--table", required=True, help="source table, as schema.table")
        action.add_argument("--target", required=True, help="as in the DAG: iceberg://catalog/namespace")
        action.add_argument("--table-name", default=TABLE_NAME, help=f"as in the DAG (default: {TABLE_NAME})")
        if name in ("set", "reset"):
            action.add_argument("--shape", help="one shape alone (default: all shapes that the checkpoint has)")
        if name == "set":
            action.add_argument("--position", required=True, metavar="LSN", help="commit LSN, 0x and 20 hex digits")
        if name == "rename":
            action.add_argument("--to", required=True, metavar="SCHEMA.TABLE", help="its name now")


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, description: str
) -> argparse.ArgumentParser:
    return actions.add_parser(name, help=description, description=description.capitalize() + ".")


def _add_load(command: argparse.ArgumentParser, *, one_table: bool = False) -> None:
    """Add the options that name a load and its tables."""
    command.add_argument("--dag", metavar="D", required=True, help="DAG id")
    command.add_argument("--task", metavar="T", required=True, help="task id of a load, with its group: shop.load")
    which = "the table, as schema.table" if one_table else "one table alone, as schema.table (default: all of the load)"
    command.add_argument("--table", required=one_table, help=which)
    command.add_argument("--dags-folder", metavar="DIR", help="where the DAG lies (default: Airflow's dags_folder)")


def _text(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _positive(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _port(text: str) -> int:
    number = _whole(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("must lie between 0 and 65535")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not number > 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    :param argv: arguments without the program's name; those of the process if absent
    :return: the exit code: 0, 1 where the demo found a difference or some tables' instances were not made, 2 where a
        command could not do its work, 130 after Ctrl-C
    """
    arguments = parser().parse_args(argv)
    try:
        code: int = importlib.import_module(_COMMANDS[arguments.command]).run(arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _SANDBOX_EXTRA:
            raise
        print(
            f"mssql-cdc {arguments.command}: module {error.name} is missing: "
            "pip install 'airflow-provider-mssql-cdc[sandbox]'",
            file=sys.stderr,
        )
        return EXIT_USAGE
    except CommandError as error:
        print(f"mssql-cdc {arguments.command}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print(f"mssql-cdc {arguments.command}: interrupted", file=sys.stderr)
        return 130
    return code
