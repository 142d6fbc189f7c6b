-- A phase is applied. $1 change, $2 phase, $3 line_sha256.
UPDATE aegis_migrate.phase SET line_sha256 = $3, done_at = clock_timestamp() WHERE change = $1 AND phase = $2
