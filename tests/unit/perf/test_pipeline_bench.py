from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from artemis_py.storage.format import codec, records
from artemis_py.storage.format.scan import Damage, log_files, whole_records
from artemis_py.storage.format.segment_index import index_fields
from bench import pipeline
from bench.__main__ import main
from bench.own import Retaining
from bench.part import Finding, Findings
from bench.pipeline_log import BEGIN_MS, BODY_BYTES, HOUR_MS, write_day


def test_a_day_of_log_is_what_a_broker_would_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.pipeline_log._SEGMENT_BYTES", 100_000)
    write_day(tmp_path, 2400)
    files = log_files([tmp_path])
    assert len(files) > 3
    damages: list[Damage] = []
    hours: Counter[int] = Counter()
    lsns: list[int] = []
    for file in files:
        data = file.path.read_bytes()
        now_ms = 0
        for record in whole_records(file.path.name, data, damages, is_last=file is files[-1]):
            lsns.append(record.lsn)
            if record.type_code == records.BATCH:
                now_ms = codec.decode_batch(record.payload).now_ms
            elif record.type_code == records.MESSAGE:
                hours[(now_ms - BEGIN_MS) // HOUR_MS] += 1
                assert len(codec.decode_message(record.payload).message.body) == BODY_BYTES
        fields = index_fields(file.path)
        assert fields["addresses"] == ["orders"]
        assert fields["sessions"][0]["client"] == "10.0.0.1:50000"
    assert not damages
    assert lsns == list(range(1, len(lsns) + 1))
    assert hours == dict.fromkeys(range(24), 100)


@pytest.mark.parametrize(
    ("finding", "row"),
    [
        (
            Finding("read", "/s", at_least=800_000, values=[1e6, 7e5, 9e5]),
            ["read", "900,000/s", "≥ 800,000/s", "met"],
        ),
        (Finding("read", "/s", at_least=800_000, values=[799_999.0]), ["read", "799,999/s", "≥ 800,000/s", "NOT MET"]),
        (Finding("lag", "s", 2, below=0.5, values=[0.2, 0.5, 0.6]), ["lag", "0.50 s", "< 0.50 s", "NOT MET"]),
        (Finding("sink", "/s", values=[5.0]), ["sink", "5/s", "", ""]),
        (Finding("sink", "/s", at_least=1), ["sink", "-", "≥ 1/s", ""]),
    ],
)
def test_the_table_judges_the_median(finding: Finding, row: list[str]) -> None:
    findings = Findings("what", [finding])
    assert findings.tables()[0].rows[1] == row
    assert findings.missed == ([finding.name] if row[-1] == "NOT MET" else [])


def test_the_document_leaves_out_what_is_derived() -> None:
    findings = Findings(
        "what", [Finding("read", "/s", values=[5.0]), Finding("CPU", "µs", values=[1.0], in_page=False)]
    )
    assert [[row[0] for row in tables[0].rows] for tables in (findings.tables(), findings.page_tables())] == [
        ["what", "read", "CPU"],
        ["what", "read"],
    ]


def test_without_spark_the_pipeline_is_named_as_not_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "absent", lambda: "there is no Java")
    assert main(["--scenario", "pipeline", "--quick", "--check"]) == 0
    assert "Not measured: there is no Java." in capsys.readouterr().out


def test_the_pipelines_broker_keeps_its_log(tmp_path: Path) -> None:
    broker = Retaining()
    broker.command(tmp_path, 1)
    assert f">{tmp_path}/retained</journal-retention-directory>" in (tmp_path / "broker.xml").read_text(
        encoding="utf-8"
    )
    assert broker.url() in (broker.metrics_url() or "")
