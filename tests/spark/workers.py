"""Python workers of Spark that are quick to start and to ask.

Spark lets every worker forget which modules there are before each task, and reads the list of a
zip file anew then: `pyspark.zip`, which is pyspark as it is installed, costs a task a tenth of a
second. Here pyspark comes from where it is installed. What workers import is imported once, before
they fork.
"""

from __future__ import annotations

import gc
import sys

if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if not place.endswith((".zip", ".jar"))]

    from pyspark.daemon import manager

    import icetree.spark.lake  # noqa: F401

    # Workers look for garbage after each task: not among what they were born with.
    gc.freeze()
    manager()
