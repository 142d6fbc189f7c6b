-- Everything that awa stores of jobs that are not over and of those that are, without what moves by itself.
SELECT jsonb_build_object(
    'open', (SELECT jsonb_agg(to_jsonb(c) - 'materialized_at') FROM awa.lease_claims c WHERE c.closed_at IS NULL
        AND NOT EXISTS (SELECT FROM awa.lease_claim_closures x
            WHERE x.claim_slot = c.claim_slot AND x.job_id = c.job_id AND x.run_lease = c.run_lease)
        AND NOT EXISTS (SELECT FROM awa.lease_claim_closure_batches b
            WHERE b.claim_slot = c.claim_slot AND b.receipt_ranges @> c.receipt_id)),
    'leases', (SELECT jsonb_agg(to_jsonb(l) - 'heartbeat_at') FROM awa.leases l),
    'completed', (SELECT jsonb_agg(to_jsonb(b)) FROM awa.receipt_completion_batches b),
    'done', (SELECT jsonb_agg(to_jsonb(d)) FROM awa.done_entries d),
    'deferred', (SELECT jsonb_agg(to_jsonb(d)) FROM awa.deferred_jobs d),
    'pruned', (SELECT sum(pruned_completed_count) FROM awa.queue_terminal_rollups))
