-- For each partitioned table: how many days ahead of today it can take, and how far back it keeps them. By the database's clock, in UTC.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
-- nullable: oldest
SELECT p.relname::text AS name,
    (SELECT count(*) FROM generate_series(0, 366) AS n
     WHERE EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid WHERE h.inhparent = p.oid AND NOT h.inhdetachpending
         AND c.relname = p.relname || '_' || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + n, 'YYYYMMDD'))
       AND n <= (SELECT coalesce(min(m), 367) FROM generate_series(0, 366) AS m WHERE NOT EXISTS (
           SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid WHERE h.inhparent = p.oid AND NOT h.inhdetachpending
           AND c.relname = p.relname || '_' || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + m, 'YYYYMMDD')))) AS days,
    (SELECT min(right(c.relname, 8)) FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid WHERE h.inhparent = p.oid) AS oldest,
    (SELECT coalesce((clock_timestamp() AT TIME ZONE 'UTC')::date - to_date(min(right(c.relname, 8)), 'YYYYMMDD'), 0)
     FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid WHERE h.inhparent = p.oid) AS behind,
    (SELECT count(*) FROM pg_inherits h WHERE h.inhparent = p.oid AND h.inhdetachpending) AS detaching
FROM pg_class p WHERE p.relnamespace = 'aegis'::regnamespace AND p.relkind = 'p' ORDER BY 1
