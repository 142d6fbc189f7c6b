-- What a batch that goes in by COPY is made with: the database's clock, one draw of randomness, whether small inputs may stand in
-- the task's row, and whether COPY may be used at all (not where row-level security judges this role).
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint AS ms,
    ('x' || right(translate(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint AS random, clock_timestamp() AS now,
    aegis.may_inline() AND NOT row_security_active('aegis.task') AS may_copy
