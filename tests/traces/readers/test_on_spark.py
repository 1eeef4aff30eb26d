"""Mapped files, OpenTelemetry and ITF on Spark, as `validate` reads them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.models.lease import LeaseTable
from tests.traces.readers.test_itf import QUINT
from tests.traces.readers.test_mapped import GOOD, TEXT
from tests.traces.readers.test_otlp import request, steps

from stagewright.spec.define import define
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.events.observability import HiddenSteps
from stagewright.traces.options import Options
from stagewright.traces.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
LEASE = define(LeaseTable)


def test_mapped_files_are_validated_on_spark(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(TEXT)
    (tmp_path / "good.log").write_text(GOOD.replace("silent for 3 s", "quiet"))
    options = Options(mapping=tmp_path / "m.toml")
    report = validate([tmp_path / "good.log"], LEASE, options, spark=spark)
    assert report.exit_code == 1
    assert {e.key.entity: str(e.where) for e in report.entities} == {
        "a": f"{tmp_path / 'good.log'}:7"
    }
    assert report.totals.unparsed == 1
    hidden = Options(mapping=tmp_path / "m.toml", hidden=HiddenSteps(frozenset({"go_silent"})))
    report = validate([tmp_path / "good.log"], LEASE, hidden, spark=spark)
    assert report.verdicts[TraceVerdict.OK] == 2


def test_opentelemetry_and_itf_are_validated_on_spark(
    spark: "SparkSession", tmp_path: Path
) -> None:
    requests = [request(step) for step in steps("a", "acquire", "go_silent", "acquire")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, requests)))
    (tmp_path / "run.itf.json").write_text(json.dumps(QUINT))
    report = validate([tmp_path], LEASE, spark=spark)
    (entity,) = report.entities
    assert str(entity.where) == f"{tmp_path / 'a.jsonl'}:3"
    assert report.verdicts[TraceVerdict.OK] == 1
