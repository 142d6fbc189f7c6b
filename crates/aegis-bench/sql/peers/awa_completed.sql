-- Completions that still have rows, and the count that is left of those that do not.
SELECT (SELECT coalesce(sum(completed_count), 0)::bigint FROM awa.receipt_completion_batches)
    + (SELECT count(*) FROM awa.done_entries WHERE state = 'completed')
    + (SELECT coalesce(sum(pruned_completed_count), 0)::bigint FROM awa.queue_terminal_rollups)
