-- Ends a pause.
--
-- lock: the pause row
-- index: pause_pkey
-- fence: none: a rule for acquire
-- returns: count
DELETE FROM aegis.pause WHERE scope = :scope::text AND value = :value::text
