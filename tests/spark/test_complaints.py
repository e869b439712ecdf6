"""What Spark complains of comes back as an error of ours."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from icetree import errors
from icetree.errors import CorruptTable, IcetreeError, NotFound
from icetree.spark.complaints import one_line

KINDS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, IcetreeError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_an_executor_comes_back_as_it_was(kind: type[IcetreeError]) -> None:
    file, rule = "s3://b/a: c.parquet", "it ends too early"
    raised = kind(file, rule) if issubclass(kind, CorruptTable) else kind(f"{file}: {rule}")
    told = f"Job aborted\nicetree.errors.{kind.__name__}: {raised} SQLSTATE: 39000\n at worker"
    with pytest.raises(kind) as caught, one_line():
        raise PySparkException(told)
    assert type(caught.value) is kind
    assert str(caught.value) == f"{file}: {rule}"


def test_executors_without_the_package_are_told_of_in_one_line() -> None:
    with pytest.raises(NotFound, match=r"^icetree is not installed where .* run: .*$"), one_line():
        raise PySparkException("Job aborted\n\nModuleNotFoundError: No module named 'icetree'\n")
