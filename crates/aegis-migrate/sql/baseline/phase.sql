-- The phase is whole without a step. One that was run here stays as it is. $1 change, $2 phase, $3 line_sha256, $4 epoch, $5 run.
INSERT INTO aegis_migrate.phase (change, phase, line_sha256, steps, epoch, run, release) VALUES ($1, $2, $3, 0, $4, $5, '')
ON CONFLICT (change, phase) DO NOTHING
