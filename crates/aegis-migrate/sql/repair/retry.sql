-- A step that nobody could tell the end of is to be run from its beginning. $1 change, $2 phase, $3 ordinal, $4 said.
UPDATE aegis_migrate.step SET state = 'failed', ended_at = coalesce(ended_at, clock_timestamp()), said = $4
WHERE change = $1 AND phase = $2 AND ordinal = $3 AND state IN ('intent', 'unknown', 'interrupted')
