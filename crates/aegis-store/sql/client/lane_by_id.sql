-- A lane by its id.
--
-- lock: none
-- index: lane_pkey
-- fence: none: a read
-- returns: optional
SELECT id, queue, kind, lo, hi FROM aegis.lane WHERE id = :id::int4
