-- A new job. $1 change, $2 what it does, $3 who, $4 run, $5 release, $6 rows of the first batch, $7 estimated rows.
INSERT INTO aegis_migrate.backfill (change, spec_sha256, epoch, state, state_by, run, release, batch_rows, rows_estimated)
VALUES ($1, $2, 1, 'running', $3, $4, $5, $6, $7)
