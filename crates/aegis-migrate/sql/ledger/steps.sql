-- All steps, in the order of their change. Text columns only.
SELECT s.change, s.phase, s.ordinal, s.state, s.line_sha256, s.sha256, s.epoch, s.said FROM aegis_migrate.step s ORDER BY s.change, s.phase, s.ordinal
