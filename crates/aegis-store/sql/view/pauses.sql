-- What is paused, by whom, why and since when.
--
-- lock: none
-- index: pause_pkey
-- fence: none: a read
-- returns: many
SELECT p.scope, p.value, p.who, p.why, p.at FROM aegis.pause p ORDER BY p.at, p.scope, p.value
