"""Which versions the formats have: of the newest samples, and as docs/upgrade.md says."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc import __version__
from airflow_provider_mssql_cdc.core.checkpoint import KEY_PREFIX, Checkpoint
from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Marker
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.schema import SchemaStore
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.table import hash_of
from airflow_provider_mssql_cdc.spark.targets import parquet
from tests.support.core.variables import Variables
from tests.support.upgrades import place
from tests.support.upgrades.cases import FORMATS, LOADED

DOCUMENTS = (Checkpoint, Marker, JobSpec, Receipt)
WRITTEN = {each.FORMAT.name: (each.FORMAT.version, each.FORMAT.needs) for each in DOCUMENTS}
NEWEST = place.VERSIONS[-1]


def versions(*documents: dict[str, Any]) -> set[tuple[int, str]]:
    """The versions that documents say of themselves."""
    return {(each["version"], each["needs"]) for each in documents}


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_newest_samples_are_of_the_versions_that_are_written(file_format):
    sample = place.read(NEWEST, file_format)
    spec, receipt = json.loads(sample["spec"]), json.loads(sample["receipt"])
    checkpoints = [json.loads(text) for key, text in sample["variables"].items() if key.startswith(KEY_PREFIX)]
    markers = [sink["after"] for table in receipt["tables"] for sink in table["sinks"]]
    found = {
        "checkpoint": versions(*checkpoints),
        "marker": versions(*markers),
        "job spec": versions(spec),
        "receipt": versions(receipt),
    }
    assert found == {name: {version} for name, version in WRITTEN.items()}
    assert {marker["layout"] for marker in markers} == {LAYOUT}


def test_the_newest_manifests_are_of_the_version_that_is_written():
    with tarfile.open(place.SAMPLES / NEWEST / "files.tar.xz") as archive:
        names = [name for name in archive.getnames() if re.search(rf"/{parquet.MANIFESTS}/\d+\.json$", name)]
        manifests = [json.loads(archive.extractfile(name).read()) for name in names]
    assert {manifest["version"] for manifest in manifests} == {parquet.VERSION}
    assert versions(*(each["marker"] for each in manifests if each["marker"])) == {WRITTEN["marker"]}


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_newest_samples_keep_the_schemas_that_their_checkpoints_name(file_format):
    sample = place.read(NEWEST, file_format)
    schemas = SchemaStore(Variables(sample["variables"]))
    stored = [from_json(Checkpoint, text) for key, text in sample["variables"].items() if key.startswith(KEY_PREFIX)]
    sinks = [sink for each in stored for sink in each.loaded.values() if sink.asserted is None]
    assert {sink.schema_kept for sink in sinks} == {True}
    assert all(schemas.find(sink.schema_hash) is not None for sink in sinks)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("version", LOADED)
def test_what_is_not_loaded_from_a_version_is_in_the_next_one_with_the_same_fields(version, file_format):
    older, later = (dict(fields(each, file_format)) for each in (version, f"v{int(version[1:]) + 1}"))
    left_out = {name for name in older if name[0] not in LOADED[version]}
    assert len(left_out) > 5
    assert {name: older[name] for name in left_out} == {name: later[name] for name in left_out}


def fields(version: str, file_format: str) -> Iterator[tuple[tuple[str, str], list[Any]]]:
    """The version and the names of the fields of each marker and checkpoint of a sample, by case and shape."""
    sample = place.read(version, file_format)
    for table in json.loads(sample["receipt"])["tables"]:
        for sink in table["sinks"]:
            yield (table["name"]["table"], sink["shape"]), [sink["after"]["version"], *sorted(sink["after"])]
    for key, text in sample["variables"].items():
        if key.startswith(KEY_PREFIX):
            found = json.loads(text)
            names = {*found, *(name for sink in found["sinks"].values() for name in sink)}
            yield (found["identity"]["table"]["table"], "checkpoint"), [found["version"], *sorted(names)]


def test_the_page_says_the_versions_that_are_written():
    table = place.PAGE.read_text().partition("## What is stored where")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"][2:]
    said = {name: (version.partition(":")[0], needs) for cell, _, version, needs in rows for name in cell.split(", ")}
    assert said == {
        **{name: (str(version), needs) for name, (version, needs) in WRITTEN.items()},
        "schema": (f"prefix `{hash_of('').partition(':')[0]}", "0.2.0"),
        "request": (str(CopyRequest.FORMAT.version), CopyRequest.FORMAT.needs),
        "manifest": (str(parquet.VERSION), "0.2.0"),
        "system columns": (str(LAYOUT), "0.2.0"),
    }
    assert f"These are the versions of package version {__version__}" in table
