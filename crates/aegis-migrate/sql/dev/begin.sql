-- A phase is being applied: with no hash that a lock has, so that one which breaks off is seen as edited. $1 change, $2 phase, $3 epoch.
INSERT INTO aegis_migrate.phase (change, phase, line_sha256, steps, epoch, run, release) VALUES ($1, $2, 'dev: begun', 0, $3, 'dev', '')
ON CONFLICT (change, phase) DO UPDATE SET line_sha256 = excluded.line_sha256, epoch = excluded.epoch, done_at = clock_timestamp()
