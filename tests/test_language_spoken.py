"""Doors that speak Iceberg's words: `CALL`, and the options of one write on Spark.

What people bring along runs as it is. What such a word comes to here is one that all doors know.
"""

from __future__ import annotations

import pytest

from icetree.spark.sql.call.procedures import PROCEDURES
from icetree.spark.write.options import NAMES
from tests.test_language import KNOWN, words
from tests.test_language_told import OF_ICEBERG, OF_JSON, OUR_COLUMNS

#: Arguments of Iceberg's procedures, by its documentation.
OF_CALL = words(
    """
    backup_table_name branch changelog_view check_duplicate_files clean_expired_metadata columns
    compute_updates drop_backup equal_authorities equal_schemes file_list_view identifier_columns
    location max_concurrent_deletes metadata_file net_changes older_than options parallelism
    partition_filter prefix_listing prefix_mismatch_mode properties ref retain_last snapshot_id
    snapshot_ids sort_by sort_order source_table spec_id strategy stream_results table timestamp to
    use_caching wap_id where dry_run
    """
)
#: Arguments that only we have, in the words of all doors.
OURS_IN_CALL = words("force max_bytes max_seconds rewrite_equality_deletes")
#: Columns of answers that Iceberg's metadata tables have no word for: those of its procedures.
GIVEN = words(
    """
    added_files_count branch_updated changed_partition_count changelog_view
    current_snapshot_id imported_files_count migrated_files_count previous_ref previous_snapshot_id
    source_snapshot_id total_data_files_count total_records_count updated_ref
    """
)
#: Options of a write that Iceberg has, and those that only we have.
OF_A_WRITE = words(
    """
    branch check-nullability check-ordering compression-codec compression-level
    compression-strategy delete-format delete-granularity distribution-mode fanout-enabled
    isolation-level merge-schema output-spec-id overwrite-mode snapshot-property.NAME
    target-delete-file-size-bytes target-file-size-bytes use-table-distribution-and-ordering
    validate-from-snapshot-id write-format advisory-partition-size
    """
)
OURS_IN_A_WRITE = words("key")


def test_a_procedure_is_called_in_words_of_icebergs_or_of_all_doors() -> None:
    said = {each.name for procedure in PROCEDURES.values() for each in procedure.takes}
    assert said == OF_CALL | OURS_IN_CALL
    assert OURS_IN_CALL <= KNOWN


@pytest.mark.parametrize("name", PROCEDURES)
def test_what_an_argument_is_called_otherwise_is_a_word_of_all_doors(name: str) -> None:
    for each in PROCEDURES[name].takes:
        assert each.ours is None or each.ours in KNOWN, each.name


def test_a_procedure_answers_in_words_that_are_known() -> None:
    given = {column for each in PROCEDURES.values() for column in each.gives.names}
    assert given - OF_ICEBERG - OUR_COLUMNS - OF_JSON - GIVEN == set()
    assert GIVEN - given == set()


def test_a_write_takes_options_of_icebergs_or_of_all_doors() -> None:
    assert set(NAMES) == OF_A_WRITE | OURS_IN_A_WRITE
    assert OURS_IN_A_WRITE <= KNOWN
