-- The newest pass of a kind. $1 change, $2 kind. Index reconcile_pass_of.
SELECT p.started_at, p.ended_at, p.rows_counted, p.missing, p.mismatch, p.orphaned, p.is_zero, p.trigger_sha256, p.asked_sha256, p.snapshot_lsn::text AS snapshot_lsn
FROM aegis_migrate.reconcile_pass p WHERE p.change = $1 AND p.kind = $2 ORDER BY p.at DESC LIMIT 1
