-- The steps of an expand that did something here, newest first. $1 change.
SELECT s.ordinal, s.statement, s.state, s.file FROM aegis_migrate.step s WHERE s.change = $1 AND s.phase = 'expand' ORDER BY s.ordinal DESC
