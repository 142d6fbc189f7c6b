# cuts: 1
# count: stale_accepted
# file: crates/aegis-store/src/generated/task.rs
# The guard looks for neither the owner nor the claim, epoch or rev: who names a running task may write.
s/WHERE t.id = k.id AND t.owner = \$\([0-9]*\)::uuid AND t.claim_id = k.claim_id AND t.epoch = k.epoch AND t.rev = k.rev/WHERE t.id = k.id/
s/SELECT aegis.lease_live(\$\([0-9]*\)::uuid) AND aegis.lineage_is/SELECT $\1::uuid IS NOT NULL AND aegis.lineage_is/
