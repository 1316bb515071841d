"""The number of threads to start with: what the system says, and the environment."""

import subprocess
import sys

import numpy as np
import pytest

from retrograd.errors import OptionError
from retrograd.runtime import threads


def siblings(root, groups):
    for cpu, group in groups.items():
        topology = root / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{group}\n", encoding="ascii")


def test_hardware_threads_of_one_core_count_once(tmp_path):
    siblings(tmp_path, {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5"})
    assert threads._cores({0, 1, 2, 3, 4, 5}, tmp_path) == 4
    assert threads._cores({0, 4}, tmp_path) == 1
    assert threads._cores({1, 4}, tmp_path) == 2


def test_a_system_that_says_nothing_about_cores(tmp_path):
    assert threads._cores({0, 1, 5}, tmp_path) == 3
    assert threads._cores(set(), tmp_path) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max 100000", None),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("1000 100000", 1),
        ("", None),
    ],
)
def test_quota_of_control_groups_version_2(tmp_path, text, expected):
    (tmp_path / "cpu.max").write_text(text, encoding="ascii")
    assert threads._quota(tmp_path) == expected


@pytest.mark.parametrize(("quota", "expected"), [("-1", None), ("350000", 4), ("0", None)])
def test_quota_of_control_groups_version_1(tmp_path, quota, expected):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota, encoding="ascii")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000", encoding="ascii")
    assert threads._quota(tmp_path) == expected


def test_no_control_groups(tmp_path):
    assert threads._quota(tmp_path) is None


def test_the_default_is_possible():
    assert 1 <= threads.default_threads() <= threads.MOST_THREADS
    assert 1 <= threads.processors() <= threads.MOST_THREADS


@pytest.mark.parametrize(("text", "expected"), [("3", 3), (" 12 ", 12)])
def test_the_environment_overrides_it(monkeypatch, text, expected):
    monkeypatch.setenv("RETROGRAD_NUM_THREADS", text)
    assert threads.default_threads.__wrapped__() == expected


@pytest.mark.parametrize("text", ["0", "two", "-1", "1.5", "100000"])
def test_an_environment_that_makes_no_sense(monkeypatch, text):
    monkeypatch.setenv("RETROGRAD_NUM_THREADS", text)
    with pytest.raises(OptionError, match="RETROGRAD_NUM_THREADS"):
        threads.default_threads.__wrapped__()


@pytest.mark.slow
def test_the_environment_of_a_process():
    code = "import retrograd as rg; print(rg.num_threads())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"RETROGRAD_NUM_THREADS": "5", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "5\n"


@pytest.mark.parametrize("n", [0, -1, 1025, True, 2.0, "2", None])
def test_what_is_no_number_of_threads(n):
    with pytest.raises(OptionError, match="number of threads"):
        threads.checked(n)


def test_integers_of_numpy():
    assert threads.checked(np.int32(3)) == 3
