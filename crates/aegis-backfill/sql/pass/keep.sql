-- Keeps a result. $1 change, $2 kind, $3 what was asked, $4 and $5 time and place of the state, $6 rows, $7 missing, $8 mismatching,
-- $9 orphaned, $10 samples, $11 trigger, $12 run, $13 who, $14 release.
INSERT INTO aegis_migrate.reconcile_pass (change, kind, asked_sha256, started_at, snapshot_lsn, rows_counted, missing, mismatch, orphaned,
    samples, trigger_sha256, run, by_whom, release)
VALUES ($1, $2, $3, $4::text::timestamptz, $5::text::pg_lsn, $6, $7, $8, $9, $10, $11, $12, $13, $14)
