"""Every job on a real broker's log, through the commands of docs/spark-jobs.md: its numbers are what clients did."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.cli.main import main
from artemis_py.spark import views
from artemis_py.spark.catalog import VIEWS
from artemis_py.spark.jobs.archived import ArchiveTables
from artemis_py.spark.jobs.delta import DeltaPlace
from tests.kit.client import connected
from tests.kit.process import BrokerProcess, configuration, eventually, for_the_module, running
from tests.spark.brokers import drained, url_of
from tests.spark.kills import JAVA, below
from tests.spark.object_store import object_store
from tests.spark.readers import rows_read
from tests.spark.story import RING, Story, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 120.0
DOCUMENT = (ROOT / "docs" / "spark-jobs.md").read_text("utf-8")
_SHELL = "".join(re.findall(r"^```sh\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)).splitlines()
COMMANDS = [shlex.split(line)[2:] for line in _SHELL if line.startswith("artemis-py pipeline ")]
"""The arguments of every command that the document shows, from the name of the job on."""


story = for_the_module(told)


@dataclass
class Pipeline:
    """Runs the documented commands, with this broker's places in them."""

    places: dict[str, str]
    capsys: pytest.CaptureFixture[str]
    told: str = ""

    def __call__(self, job: str, *more: str, number: int = 0, code: int = 0) -> dict[str, Any]:
        """The document's command number ``number`` of a job, as JSON."""
        command = [line for line in COMMANDS if line[0] == job][number]
        return self.run(*(self.places.get(argument, argument) for argument in command), *more, code=code)

    def run(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        ended = main(["pipeline", *arguments, "--json"])
        out, err = self.capsys.readouterr()
        assert ended == code, err
        assert (err == "") is ("--publish" not in arguments), err
        self.told = err
        value: dict[str, Any] = json.loads(out)
        return value


@pytest.fixture
def pipeline(spark: SparkSession, story: Story, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Pipeline:
    """Runs a job and returns its JSON."""
    places = {
        "http://localhost:8161": story.broker.url, "tcp://localhost:61613": url_of(story.broker),
        "/data/archive": str(tmp_path / "archive"), "/data/lake": str(tmp_path / "lake"),
        "/data/orders": str(tmp_path / "orders"), "id=header['order-id']": "id=text",
        "jdbc:postgresql://localhost/shop": f"jdbc:derby:{tmp_path}/shop", "12-345": story.ledger.poison["id"],
    }  # fmt: skip
    return Pipeline(places, capsys)


def by(rows: list[dict[str, Any]], *names: str) -> dict[Any, dict[str, Any]]:
    """Rows by the values of some columns."""
    return {tuple(row[name] for name in names) if len(names) > 1 else row[names[0]]: row for row in rows}


def test_views_of_the_events(spark: SparkSession, story: Story) -> None:
    """Of directories; the notebook has those of a url."""
    kept = f"e2e={story.folder / 'kept'},e2e={story.folder / 'journal'}"
    views(spark, {"journal": kept, "columns": "offset"}, "story")
    try:
        told = {name: [row.asDict() for row in spark.table(f"story.{name}").collect()] for name in VIEWS}
    finally:
        spark.sql("DROP DATABASE story CASCADE")
    ledger = story.ledger
    sums: Counter[tuple[str, str]] = Counter()
    for row in told["throughput"]:
        sums["published", row["address"]] += row["published"]
        if row["queue"] == "orders":
            sums["delivered", row["consumer"].rpartition("/")[2]] += row["delivered"]
            sums["acked", row["consumer"].rpartition("/")[2]] += row["acked"]
    published = {**ledger.published, "DLQ": 1, "EXPIRED": 3}
    for name, truth in (("published", published), ("delivered", ledger.delivered), ("acked", ledger.acked)):
        assert {key: count for (of, key), count in sums.items() if of == name and count} == truth
    orders = [row for row in told["latency"] if row["queue"] == "orders"]
    assert len(orders) == ledger.published["orders"]
    acked = [row for row in orders if row["totalMs"] is not None]
    assert len(acked) == sum(ledger.acked.values())
    longest_ms = max(most for _, most in ledger.holds_ms.values())
    assert 0 <= sorted(row["totalMs"] for row in acked)[len(acked) // 2] <= longest_ms + 2
    assert all(row["waitMs"] <= row["totalMs"] for row in acked)
    ticks = [row for row in told["depth"] if row["queue"] == "ticks"]
    assert sum(row["gone"] for row in ticks) == 7
    assert max(row["depthMax"] for row in ticks) in (RING, RING + 1)
    assert max(row["depthMax"] for row in told["depth"] if row["queue"] == "orders") == 6


def test_the_notebook(spark: SparkSession, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its cells, in order; each chart has something in it."""
    import matplotlib
    from matplotlib import pyplot as plt

    matplotlib.use("agg")
    charts: dict[str, int] = {}

    def show() -> None:
        for number in plt.get_fignums():
            [axes] = plt.figure(number).axes
            charts[axes.get_title()] = len(axes.lines) + len(axes.patches)
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    notebook = json.loads((ROOT / "docs" / "notebooks" / "log.ipynb").read_text("utf-8"))
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec("".join(cell["source"]).replace("http://localhost:8161", story.broker.url), names)
    spark.sql("DROP DATABASE artemis CASCADE")
    assert charts == {
        "publish → deliver, 99 of 100 messages": 1, "deliver → acknowledge, 99 of 100 messages": 1,
        "publish → acknowledge, 99 of 100 messages": 1, "published per address": 6, "acked per queue": 1,
        "delivered per consumer": 2, "messages in the queue": 6, "left without being consumed": 4,
    }  # fmt: skip


def test_losses(pipeline: Pipeline, story: Story) -> None:
    value = pipeline("losses")
    found = by(value["tables"]["losses"], "cause", "address")
    anna, bert = story.ledger.origins["anna"], story.ledger.origins["bert"]
    assert {key: (row["messages"], row["lost"], row["origin"]) for key, row in found.items()} == {
        ("replaced", "ticks"): (7, 7, bert),
        ("refused", "narrow"): (4, 4, bert),
        ("expired", "offers"): (3, 0, anna),
        ("dead", "orders"): (1, 0, anna),
    }
    assert found["dead", "orders"]["keptIn"] == "DLQ"
    assert found["expired", "offers"]["keptIn"] == "EXPIRED"
    assert found["refused", "narrow"]["reason"].lower() == "drop"
    assert found["dead", "orders"]["user"] == "anna"


def test_dead_letters(pipeline: Pipeline, story: Story) -> None:
    tables = pipeline("dead-letters")["tables"]
    found = by(tables["groups"], "originalQueue")
    assert found["orders"]["shape"] == "JSON object: id, total"
    assert found["orders"]["origin"] == story.ledger.origins["anna"]
    assert "kind" in found["orders"]["headerNames"].split(", ")
    assert found["offers"]["messages"] == 3
    assert story.ledger.poison["body"] in [row["preview"] for row in tables["examples"]]


def test_nothing_found_says_what_there_is(pipeline: Pipeline, story: Story) -> None:
    places = {"--url": story.broker.url, "--journal": str(story.folder)}
    for option, place in places.items():
        notes = pipeline.run("losses", option, place, "--addresses", "nowhere")["notes"]
        [extent] = [note for note in notes if note != "no log has the address 'nowhere'"]
        assert len(notes) == 2
        assert re.fullmatch(r"no results in the log, which goes from 20.{17} to 20.{17} UTC", extent)


def test_a_log_that_tells_only_half_says_so(
    spark: SparkSession, sink_broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without retention, and without a journal."""
    url = f"http://127.0.0.1:{sink_broker.ports['http']}"
    with connected(sink_broker.port) as client:
        client.ask("SEND", {"destination": "/queue/half", "persistent": "true"}, b"x")
    assert main(["pipeline", "losses", "--url", url]) == 0
    assert "is kept without journal-retention-directory" in capsys.readouterr().out
    with running(configuration(), tmp_path) as broker:
        assert main(["pipeline", "losses", "--url", f"http://127.0.0.1:{broker.ports['http']}"]) == 1
    assert "persistence-enabled is false; set it to true, and name a journal-ret" in capsys.readouterr().err


def test_a_place_that_cannot_be_written(
    story: Story, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    assert main(["pipeline", "archive", str(file / "archive"), "--url", story.broker.url]) == 1
    assert capsys.readouterr().err == f"artemis-py: {file}/archive/_archive: Not a directory\n"


def test_an_archive_has_no_parts(
    story: Story, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker drops what it is told is archived, of all addresses."""
    for part in (["--addresses", "orders"], ["--from", "1h"], ["--to", "now"]):
        assert main(["pipeline", "archive", str(tmp_path / "archive"), "--url", story.broker.url, *part]) == 2
        assert "Leave out --from, --to and --addresses" in capsys.readouterr().err
    assert not (tmp_path / "archive").exists()


def test_reconcile(spark: SparkSession, pipeline: Pipeline, story: Story) -> None:
    log = spark.read.format("artemis").option("url", story.broker.url).option("subscribe", "orders").load()
    rows = log.selectExpr("broker", "messageId", "cast(value as string) as id", "publishedAt as created").persist()
    sink, database = pipeline.places["/data/orders"], pipeline.places["jdbc:postgresql://localhost/shop"]
    [poison] = rows.where(f"id = '{story.ledger.poison['body']}'").collect()
    rows.where(f"messageId != {poison.messageId}").write.parquet(sink)
    value = pipeline("reconcile", code=1)
    count = story.ledger.published["orders"]
    assert value["facts"] == {
        "messages": count, "rows": count - 1, "missing": 1, "doubled": 0, "late": 0, "pending": 0, "unknown": 0,
    }  # fmt: skip
    assert [row["address"] for row in value["tables"]["addresses"]] == ["orders"]
    [row] = value["tables"]["differences"]
    assert (row["what"], row["key"], row["messageId"]) == ("missing", f"e2e, {poison.messageId}", poison.messageId)
    assert "the log and the sink differ" in value["notes"]
    late = rows.where("id = 'a3'").selectExpr("broker", "messageId", "id", "created + interval 11 minutes as created")
    options = {"url": f"{database};create=true", "dbtable": "orders", "createTableColumnTypes": "id VARCHAR(99)"}
    rows.where("id != 'a3'").unionByName(late).write.format("jdbc").options(**options).save()
    value = pipeline("reconcile", number=1, code=1)
    assert [(row["what"], row["key"], row["lateMs"]) for row in value["tables"]["differences"]] == [
        ("late", "a3", 11 * 60_000)
    ]


def test_trace(pipeline: Pipeline, story: Story) -> None:
    rows = pipeline("trace")["tables"]["events"]
    assert [row["what"] for row in rows] == ["arrived", *["delivered", "failed"] * 2, "dead", "copied", "there"]
    assert rows[0]["who"] == f"{story.ledger.origins['anna']} (user anna)"
    assert rows[4]["text"] == "delivery 2 failed: NACK"
    assert ": sent to DLQ, on DLQ" in rows[6]["text"]


def program(name: str) -> str:
    """One that the document shows."""
    found = re.search(rf"<!-- {name} -->\n```python\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    return found[1]


def test_a_program(spark: SparkSession, story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    exec(program("jobs: program").replace("http://localhost:8161", story.broker.url), {"spark": spark})
    assert "orders" in capsys.readouterr().out


def test_programs_on_an_archive(
    spark: SparkSession, pipeline: Pipeline, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline("archive", number=2)
    lake = pipeline.places["/data/lake"]
    exec(program("archive: program").replace("/data/lake", lake), {"spark": spark})
    assert capsys.readouterr().out == f"{count_in(story, subscribe='orders')}\n"
    # A Python that ends while a thread of pyarrow is at work with its files is aborted now and then.
    code = program("archive: pandas").replace("/data/lake", lake) + "\nimport os, sys; sys.stdout.flush(); os._exit(0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert done.stdout == f"{count_in(story)}\n"


def count_in(story: Story, **options: str) -> int:
    """How many messages are in the log."""
    return len(rows_read({"url": story.broker.url, "columns": "offset", **options}))


@pytest.mark.takes_turns("the long jobs")
@pytest.mark.parametrize(("place", "first"), [("/data/archive", 0), ("/data/lake", 2)])
def test_archive_and_jobs_on_it(spark: SparkSession, pipeline: Pipeline, story: Story, place: str, first: int) -> None:
    [row] = pipeline("archive", number=first)["tables"]["brokers"]
    assert row["messages"] == count_in(story)
    [row] = pipeline("archive", "--compact-before", "now", number=first)["tables"]["brokers"]
    assert row["messages"] == 0
    with urllib.request.urlopen(f"{story.broker.url}/log/cursors/archive") as answer:
        assert json.load(answer)["lsn"] == row["to"]
    place = pipeline.places[place]
    archived = pipeline.run("losses", "--archive", place)
    assert archived["tables"] == pipeline("losses")["tables"]
    ticks = ("--addresses", "ticks")
    archived = pipeline.run("losses", "--archive", place, *ticks)
    assert archived["tables"] == pipeline("losses", *ticks)["tables"]
    assert archived["facts"]["messages"] == 7
    dead = pipeline("dead-letters")
    assert pipeline.run("dead-letters", "--archive", place)["tables"] == dead["tables"]
    message = story.ledger.poison["id"]
    assert pipeline.run("trace", message, "--archive", place)["tables"] == pipeline("trace")["tables"]
    again = ("--where", "originalQueue = 'orders'", "--address", "again")
    selected = pipeline.run("replay", "--url", story.broker.url, *again)
    assert pipeline.run("replay", "--archive", place, *again)["tables"] == selected["tables"]
    assert selected["facts"]["messages"] == 1


def test_an_archive_in_an_object_store_that_goes_on(
    spark: SparkSession, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until SIGTERM; what is sent meanwhile comes into it."""
    with object_store() as storage, ThreadPoolExecutor(1) as pool:
        place = DeltaPlace("s3://bucket/lake/messages", storage)
        options = [text for name, value in storage.items() for text in ("--storage", f"{name}={value}")]
        before = count_in(story)

        def rows() -> int:
            return sum(one.rows for one in place.files()) if place.exists() else 0

        def send_and_stop() -> None:
            try:
                eventually("the log so far", rows, lambda count: count == before, WAIT_S)
                with connected(story.broker.port) as client:
                    client.publish("/queue/offers", range(5))
                eventually("five more", rows, lambda count: count == before + 5, WAIT_S)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        [command] = [line for line in COMMANDS if "--follow" in line]
        command = [story.broker.url if text == "http://localhost:8161" else text for text in command]
        ended = pool.submit(send_and_stop)
        own = ["--every", "300ms", "--cursor", "followed", "--json"]
        assert main(["pipeline", *command, *own, *options]) == 0
        ended.result()
        out, err = capsys.readouterr()
        assert err == "archiving into s3://bucket/lake until Ctrl-C or SIGTERM\n"
        [row] = json.loads(out)["tables"]["brokers"]
        assert (row["messages"], row["steps"] >= 2) == (before + 5, True)
        with urllib.request.urlopen(f"{story.broker.url}/log/cursors/followed") as answer:
            assert json.load(answer)["lsn"] == row["to"]
        assert main(["pipeline", "losses", "--archive", "s3://bucket/lake", "--json", *options]) == 0
        archived = json.loads(capsys.readouterr().out)
        assert main(["pipeline", "losses", "--url", story.broker.url, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["tables"] == archived["tables"]


def test_an_archive_that_goes_on_ends_with_its_store(
    spark: SparkSession, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    """With code 1, as a supervisor expects, and one line that names the store."""
    with ExitStack() as store, ThreadPoolExecutor(1) as pool:
        storage = {**store.enter_context(object_store()), "max_retries": "0"}
        place = DeltaPlace("s3://bucket/gone/messages", storage)

        def end_the_store() -> None:
            try:
                eventually("an archive", lambda: place.exists() and place.files(), bool, WAIT_S)
            finally:
                store.close()
                with connected(story.broker.port) as client:
                    client.publish("/queue/offers", range(5))

        ended = pool.submit(end_the_store)
        options = [text for name, value in storage.items() for text in ("--storage", f"{name}={value}")]
        follow = ["--follow", "--every", "300ms", "--cursor", "gone", *options]
        assert main(["pipeline", "archive", "s3://bucket/gone", "--url", story.broker.url, *follow]) == 1
        ended.result()
    out, err = capsys.readouterr()
    begun, failed = err.splitlines()
    assert (out, begun) == ("", "archiving into s3://bucket/gone until Ctrl-C or SIGTERM")
    assert re.match(r"artemis-py: s3://bucket/gone.*: .*127\.0\.0\.1.*\. Look whether the store answers", failed)


@pytest.mark.takes_turns("the killed drivers")
def test_an_archive_that_goes_on_ends_with_its_spark(story: Story, tmp_path: Path) -> None:
    """The real process, whose JVM is killed, as the kernel does where memory is short."""
    place = ["archive", str(tmp_path / "archive"), "--url", story.broker.url, "--cursor", "ended"]
    with subprocess.Popen(
        [sys.executable, "-m", "artemis_py", "pipeline", *place, "--follow", "--every", "300ms"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        try:
            shown = tmp_path / "archive" / "messages"
            eventually("a step", lambda: process.poll() is not None or shown.exists(), bool, WAIT_S)
            os.kill(below(process.pid, JAVA)[0], signal.SIGKILL)
            with connected(story.broker.port) as client:
                client.publish("/queue/offers", range(5))
            out, err = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
    assert (process.returncode, out) == (1, "")
    begun, failed = err.splitlines()
    assert begun == f"archiving into {tmp_path / 'archive'} until Ctrl-C or SIGTERM"
    assert failed.startswith("artemis-py: Spark itself ended, most often for lack of memory; give it more with --conf ")


@pytest.mark.takes_turns("the killed drivers")
@pytest.mark.parametrize("layout", ["parquet", "delta"])
def test_an_archive_killed_in_the_middle(
    spark: SparkSession, pipeline: Pipeline, story: Story, tmp_path: Path, layout: str
) -> None:
    """The real process, on a terminal: it shows what it does, dies, and the next run makes it whole."""
    directory = tmp_path / "archive"
    leader, follower = pty.openpty()
    arguments = ["pipeline", "archive", str(directory), "--url", story.broker.url, "--cursor", "killed"]
    arguments += ["--table-format", layout]
    begun = "_archive/staging-*/messages" if layout == "parquet" else "messages/address=*"
    shuffles = ["--conf", "spark.sql.shuffle.partitions=1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "artemis_py", *arguments, *shuffles],
        stdout=subprocess.PIPE,
        stderr=follower,
        env=environment,
    ) as process:
        try:
            eventually(
                "a step under way or done",
                lambda: process.poll() is not None or list(directory.glob(begun)),
                bool,
                wait_s=100,
            )
        finally:
            process.kill()
            os.close(follower)
        assert process.wait() == -9
    shown = os.read(leader, 1 << 20).decode(errors="replace")  # the terminal cuts where its buffer ends
    os.close(leader)
    assert "starting Spark" in shown
    assert "WARN" not in shown
    pipeline.run(*arguments[1:])
    archived = ArchiveTables(directory).frame(spark, "messages").select("messageId")
    rows = [row.messageId for row in archived.collect()]
    assert Counter(Counter(rows).values()) == {1: count_in(story)}


def test_replay(pipeline: Pipeline, story: Story) -> None:
    assert pipeline("replay")["facts"]["messages"] == 1
    assert story.broker.metric("artemis_messages_added", queue="again") == 0
    select = ("--url", story.broker.url, "--address", "again")
    assert main(["pipeline", "replay", *select, "--publish"]) == 2
    assert "--publish needs --target tcp://HOST:PORT" in pipeline.capsys.readouterr().err
    value = pipeline("replay", number=1)
    assert f"run it again with --run-id {value['facts']['run']} to continue" in pipeline.told
    assert value["facts"]["chunks"] == 1
    [message] = drained(story.broker, "again", 1)
    assert message.body.decode() == story.ledger.poison["body"]
    assert message.header("kind") == "{"


def test_every_documented_command_is_run_here() -> None:
    counts = Counter(line[0] for line in COMMANDS)
    several = {"archive": 4, "replay": 2, "reconcile": 2}
    source = Path(__file__).read_text("utf-8")
    for job, count in counts.items():
        assert f'pipeline("{job}"' in source
        assert count == several.get(job, 1)


# ---- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "give the place of the log: --journal DIR, --url http://HOST:PORT, --context NAME or --archive DIR"),
        (["--url", "http://127.0.0.1:1", "--archive", "x"], 2, "give only one of these"),
        (["--url", "http://127.0.0.1:1|http://h:abc"], 2, "http://h:abc is not the URL of an HTTP acceptor"),
        (["--journal", "{folder}/nothing"], 1, "which is not a directory on this machine"),
        (["--journal", "{folder}"], 1, "there is no log in"),
        (["--url", "http://127.0.0.1:99999"], 2, "http://127.0.0.1:99999 is not the URL of an HTTP acceptor"),
        (["--url", "http://x", "--from", "2h", "--to", "3h"], 2, "--from must be before --to"),
        (["--archive", "{folder}"], 1, "is not an archive; artemis-py pipeline archive makes one"),
    ],
)
def test_errors_that_need_no_spark(
    arguments: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "losses", *(each.format(folder=tmp_path) for each in arguments)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["losses", "--from", "soon"], "'soon' is not a time; write 2026-01-31T10:00"),
        (["lossy"], "did you mean 'losses'?"),
        (
            ["losses", "--conf", "memory=4g"],
            ("is not a Spark setting; write NAME=VALUE, such as spark.executor.memory=4g"),
        ),
        (["replay"], "one of the arguments --address --original is required"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["pipeline", *arguments])
        assert end.value.code == 2
        assert said in capsys.readouterr().err


def test_without_the_extra(tmp_path: Path) -> None:
    """A Python without site-packages: no pyspark, and no Spark is needed to say so, nor to list the jobs."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from artemis_py.cli.main import main; sys.exit(main())"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-c", program, "pipeline", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)

    done = run("losses", "--url", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "pyspark and pyarrow missing: run in a checkout of artemis_py: pip install '.[spark]'" in done.stderr
    listed = run("--help")
    assert listed.returncode == 0
    assert "dead-letters  dead and expired messages" in listed.stdout
