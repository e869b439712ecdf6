"""Many threads may be the first to read table metadata."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys, threading
sys.setswitchinterval(1e-6)
from icetree.codec import metadata
from icetree.spec.edit.create import table_metadata
made = table_metadata("id long, name string", location="s3://b/t", partition_by=["bucket(4, id)"],
                      uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1", at_ms=1)
data = metadata.encode(made)
barrier = threading.Barrier(8)
def run():
    barrier.wait()
    for _ in range(20):
        assert metadata.decode(data, file="m") == made
threads = [threading.Thread(target=run) for _ in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
print("all alive")
"""


def test_threads_that_decode_metadata_first_at_the_same_time_survive() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "all alive\n", done.stderr
