-- Every move of every task's row in the order in which they were seen, with how late it was by the old owner's lease: when it was
-- seen, and when its statement arrived.
SELECT jsonb_build_object('task', m.task, 'old_epoch', m.old_epoch, 'new_epoch', m.new_epoch, 'old_rev', m.old_rev,
    'new_rev', m.new_rev, 'old_owner', m.old_owner, 'new_owner', m.new_owner, 'old_claim', m.old_claim, 'new_claim', m.new_claim,
    'crashes', m.crashes, 'worker_state', m.worker_state,
    'late_ms', (extract(epoch FROM m.at - m.lease_until) * 1000)::bigint,
    'arrived_late_ms', (extract(epoch FROM m.arrived - m.lease_until) * 1000)::bigint, 'housekeeping', m.housekeeping,
    'living', m.living,
    'client', m.client)
FROM drill.move m ORDER BY m.n
