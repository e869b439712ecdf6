"""Which equality deletes apply to a file, as text that Spark looks a number up in: `,3,17,`.

Text is a fact of a file like others, where a list could be none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as f

#: The fact's name among a row's columns.
APPLYING = "__icetree_applying"


def numbered(deletes: pa.Table) -> pa.Table:
    """Return delete files, each once however many entries name it: its row is its number."""
    locations = deletes["location"].combine_chunks()
    firsts = pc.index_in(locations, value_set=locations).to_numpy(zero_copy_only=False)
    return deletes.filter(pa.array(firsts == np.arange(len(firsts))))


def texts(tasks: pa.Table, deletes: pa.Table, known: pa.Table) -> pa.Array:
    """Return the text of each task, which names `deletes` by row, with their numbers in `known`."""
    every = pc.index_in(deletes["location"], value_set=known["location"].combine_chunks())
    lists = tasks["equality_deletes"].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    numbers = every.combine_chunks().take(lists.flatten())
    assert numbers.null_count == 0  # who narrows a plan finds no further deletes
    words = numbers.cast(pa.string())
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), words), ",")
    return pc.binary_join_element_wise(",", joined, ",", "")


def applies(number: Column) -> Column:
    """Tell whether the delete file with a number applies to a row's file."""
    return f.contains(f.col(APPLYING), number)


def word(number: str) -> Column:
    """Return what to look for in the text, given SQL of a delete file's number."""
    return f.expr(f"concat(',', {number}, ',')")
