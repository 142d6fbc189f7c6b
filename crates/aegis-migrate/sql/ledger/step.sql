-- Writes a step's state. $1 change, $2 phase, $3 ordinal, $4 state, $5 line_sha256, $6 raw_sha256, $7 sha256, $8 file, $9 line, $10 statement,
-- $11 class, $12 epoch, $13 run, $14 by, $15 release, $16 server_version, $17 sqlstate, $18 said.
INSERT INTO aegis_migrate.step AS s (change, phase, ordinal, state, line_sha256, raw_sha256, sha256, file, line, statement, class, attempt, epoch,
    run, by_whom, release, server_version, started_at, ended_at, sqlstate, said)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, $13, $14, $15, $16, clock_timestamp(),
    CASE WHEN $4 = 'intent' THEN NULL ELSE clock_timestamp() END, $17, $18
ON CONFLICT (change, phase, ordinal) DO UPDATE SET state = excluded.state, line_sha256 = excluded.line_sha256, raw_sha256 = excluded.raw_sha256,
    sha256 = excluded.sha256, file = excluded.file, line = excluded.line, statement = excluded.statement, class = excluded.class,
    attempt = s.attempt + (s.epoch <> excluded.epoch)::int, epoch = excluded.epoch, run = excluded.run, by_whom = excluded.by_whom,
    release = excluded.release, server_version = excluded.server_version,
    started_at = CASE WHEN s.state = 'intent' AND s.epoch = excluded.epoch THEN s.started_at ELSE excluded.started_at END,
    ended_at = excluded.ended_at, sqlstate = excluded.sqlstate, said = excluded.said
WHERE s.state NOT IN ('applied', 'reconciled')
