-- What is paused, by whom, why and since when.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
SELECT p.scope, p.value, p.who, p.why, p.at, extract(epoch FROM clock_timestamp() - p.at)::float8 AS age_s FROM aegis.pause p ORDER BY p.at LIMIT 1000
