-- Pauses a queue, kind, release or tenant from the next claim on; who and why are stored.
--
-- lock: the pause row
-- index: pause_pkey
-- fence: none: a rule for acquire
-- returns: count
WITH p AS (
    INSERT INTO aegis.pause (scope, value, who, why) VALUES (:scope::text, :value::text, :who::text, :why::text)
    ON CONFLICT (scope, value) DO UPDATE SET who = excluded.who, why = excluded.why, at = clock_timestamp()
    RETURNING scope, value, who, why)
INSERT INTO aegis.fleet_change (what, subject, actor, reason) SELECT 'pause', p.scope || ' ' || p.value, p.who, p.why FROM p
