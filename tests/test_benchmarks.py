"""What benchmarks print and write: the format, never the figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import data, rest_export
from benchmarks.harness import Report, Timing, main, table, time_each
from benchmarks.plan_tables import build, open_lake
from benchmarks.rest_stock import refused_in
from benchmarks.upgrade_table import build_v2, upgrade
from icetree.codec import manifest
from icetree.serve.watching import Watching
from icetree.spec.entry.entry import ROOT


def trivial(report: Report, quick: bool) -> None:
    took = time_each(
        {"small": lambda: sum(range(10)), "large": lambda: sum(range(1000))}, seconds=0
    )
    report.add("small", took["small"], bytes=10, files=1)
    report.add("large", took["large"], system="other", rss_mb=0.5)
    report.at_most("a ceiling", 3, 4)
    report.at_least("a floor", 5, 4 if quick else 6)


def run(tmp_path: Path, *arguments: str) -> tuple[int, list[dict[str, object]]]:
    target = tmp_path / "lines.json"
    status = main("trivial", None, trivial, [*arguments, "--json", str(target)])
    return status, [json.loads(line) for line in target.read_text().splitlines()]


def test_a_measurement_is_one_json_line_without_what_means_nothing_for_it(tmp_path: Path) -> None:
    _, [small, large, *_] = run(tmp_path, "--quick")
    assert set(small) == {"bench", "case", "system", "cpu_ms", "wall_ms", "bytes", "files"}
    assert set(large) == {"bench", "case", "system", "cpu_ms", "wall_ms", "rss_mb"}
    assert (small["bench"], small["case"], small["system"]) == ("trivial", "small", "icetree")
    assert large["system"] == "other"


def test_a_figure_to_reach_is_one_json_line(tmp_path: Path) -> None:
    _, [*_, ceiling, floor] = run(tmp_path)
    told = {"bench": "trivial", "check": "a ceiling, at most", "value": 3, "reach": 4}
    assert ceiling == told | {"holds": True}
    assert floor["holds"] is False


def test_the_exit_status_says_whether_every_figure_was_reached(tmp_path: Path) -> None:
    assert run(tmp_path, "--quick")[0] == 0
    assert run(tmp_path)[0] == 1


def test_people_see_a_figure_that_was_not_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    [ceiling, floor] = [line for line in lines if line.startswith("a ")]
    assert ceiling.split() == ["a", "ceiling,", "at", "most", "3.00", "4", "holds"]
    assert floor.endswith("DOES NOT HOLD")


def test_a_table_aligns_words_left_and_figures_right() -> None:
    assert table(("case", "CPU ms"), [("a", "1.00"), ("longer", "10.00")]).splitlines() == [
        "case    CPU ms",
        "--------------",
        "a         1.00",
        "longer   10.00",
    ]


def test_runs_that_are_compared_take_turns() -> None:
    seen: list[str] = []
    took = time_each({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, seconds=0)
    assert seen == ["a", "b"] * (len(seen) // 2)
    assert len(seen) >= 6
    assert all(isinstance(each, Timing) and each.wall_ms >= 0 for each in took.values())


def test_memory_that_a_run_touches_raises_the_peak() -> None:
    # In a process of its own: of one that has done much, the system may take back meanwhile more than it touches.
    code = (
        "import numpy; from benchmarks.harness import rss_rise_mb;"
        "print(rss_rise_mb(lambda: numpy.ones(64 << 20, numpy.uint8)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parents[1],
    ).stdout.strip()
    assert told == "None" or float(told) > 50


def test_made_up_entries_keep_every_rule_of_a_root() -> None:
    shape = data.shape_of(50)
    files = data.existing(data.new_files(np.arange(300), shape))
    content = manifest.encode(files, ROOT, shape)
    assert manifest.decode(content, ROOT, shape, file="root").num_rows == 300


def test_the_table_to_be_upgraded_has_as_many_manifests_and_files_as_asked(tmp_path: Path) -> None:
    build_v2(tmp_path, files=20, manifests=4)
    told = upgrade(tmp_path)
    assert (told.leaves, told.data_files, told.format_version) == (4, 20, 2)


def test_an_export_is_measured_after_appends_and_after_deletes(tmp_path: Path) -> None:
    build(tmp_path, 200)
    report = Report("rest", tell=lambda _: None)
    rest_export.measure(report, tmp_path, 200, rounds=2)
    whole, append, delete = report.measurements
    assert [each.case for each in (whole, append, delete)] == [
        "first export of 200 files",
        "export after one small append, 200 files",
        "export after one small delete, 200 files",
    ]
    # Not all of the table is written again after an append, and all of its one part after a delete.
    assert append.bytes is not None
    assert append.bytes < (whole.bytes or 0) < (delete.bytes or 0) + append.bytes
    reach = [(each.check, each.reach) for each in report.checks]
    assert reach == [(f"{each.case}, ms, at most", 300) for each in (append, delete)]
    with open_lake(tmp_path) as lake:
        assert lake.table("db.t200").scan().plan().tasks.num_rows == 200


def test_requests_that_were_late_are_counted_whatever_their_route() -> None:
    counts, route = Watching(), "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    counts._requests.update({(route, "POST", 200): 3, (route, "POST", 409): 2})
    assert refused_in(counts.text()) == 2
