-- A phase is whole. $1 change, $2 phase, $3 line_sha256, $4 steps, $5 epoch, $6 run, $7 release.
INSERT INTO aegis_migrate.phase (change, phase, line_sha256, steps, epoch, run, release) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (change, phase) DO UPDATE SET line_sha256 = excluded.line_sha256, steps = excluded.steps, epoch = excluded.epoch, run = excluded.run,
    release = excluded.release, done_at = clock_timestamp()
