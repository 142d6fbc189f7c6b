-- awa keeps no row for each job: entries are appended, completions are batches, and whole partitions are emptied.
SELECT (SELECT count(*) FROM awa.ready_entries)
    - (SELECT coalesce(sum(completed_count), 0)::bigint FROM awa.receipt_completion_batches)
    - (SELECT count(*) FROM awa.done_entries WHERE state = 'completed')
