-- Wakes idle workers of queues: a hint. Sent in a transaction of its own, since a commit with notifications takes one
-- lock of the whole instance.
--
-- lock: none
-- index: none
-- fence: none: a hint
-- returns: one
SELECT count(*) AS sent FROM (SELECT pg_notify('aegis', q) FROM unnest(:queues::text[]) q OFFSET 0) x
