from __future__ import annotations

import json

import pytest

from artemis_py.cli.main import main
from artemis_py.perf.registry import SCENARIOS
from tests.kit.fake_broker import FakeBroker, Faults


def test_json_of_a_real_run(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker() as broker:
        url = f"stomp://127.0.0.1:{broker.port}"
        code = main(
            ["perf", url, "--scenario", "1, 5", "--messages", "100", "--warmup", "0", "--rounds", "2", "--json"]
        )
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert [result["scenario"] for result in found["results"]] == ["1", "5"]
    assert all(len(result["rounds"]) == 2 for result in found["results"])


def test_a_table_with_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    import os

    with FakeBroker() as broker:
        url = f"stomp://127.0.0.1:{broker.port}"
        assert main(["perf", url, "--scenario", "1", "--messages", "100", "--pid", str(os.getpid())]) == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert "CPU s/M" in head
    assert "RSS MB" in head


def test_a_failed_scenario_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker(Faults(error_at=5)) as broker:
        assert main(["perf", f"stomp://127.0.0.1:{broker.port}", "--scenario", "1", "--messages", "50"]) == 1
    assert "disk on fire" in capsys.readouterr().out


def test_no_broker_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker() as broker:
        port = broker.port
    assert main(["perf", f"stomp://127.0.0.1:{port}"]) == 1
    error = capsys.readouterr().err
    assert "connection refused" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--scenario", "77"], ["--send-header", "x"], ["stomp://a:1/queue"]]
)
def test_wrong_arguments_are_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perf", *arguments]) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--messages", "0"], ["--seconds", "inf"], ["--rounds", "x"], ["--version", "2"]]
)
def test_wrong_numbers_are_refused_by_the_parser(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["perf", *arguments])
    assert stopped.value.code == 2


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perf", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SCENARIOS)
    assert len({line.index(scenario.title) for line, scenario in zip(lines, SCENARIOS.values(), strict=True)}) == 1
