-- Ends a pause; who and why are stored.
--
-- lock: the pause row
-- index: pause_pkey
-- fence: none: a rule for acquire
-- returns: count
WITH p AS (DELETE FROM aegis.pause WHERE scope = :scope::text AND value = :value::text RETURNING scope, value)
INSERT INTO aegis.fleet_change (what, subject, actor, reason)
SELECT 'resume', p.scope || ' ' || p.value, :actor::text, :reason::text FROM p
