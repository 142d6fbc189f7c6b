# cuts: 1
# count: stale_accepted
# file: crates/aegis-store/src/generated/task.rs
# A failure is written whoever reports it, whatever the lease says: only the task has to be running.
/^pub static FAIL:/,/^    types:/{
s/WHERE t.id = k.id AND t.owner = \$\([0-9]*\)::uuid AND t.claim_id = k.claim_id AND t.epoch = k.epoch AND t.rev = k.rev/WHERE t.id = k.id/
s/SELECT aegis.lease_live(\$\([0-9]*\)::uuid) AND aegis.lineage_is/SELECT $\1::uuid IS NOT NULL AND aegis.lineage_is/
}
