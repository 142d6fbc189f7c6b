-- What is in the scope, as OIDs: $1 schemas (NULL: all), $2 and $3 schemas and names of objects (NULL: all).
-- The one place that knows what is never read: the server's schemas, the tool's, and what an extension owns.
-- Named objects come with their partition tree and with what depends on them, level by level.
--
-- lock: none
-- returns: one row of text: a JSON object
WITH RECURSIVE space AS MATERIALIZED (
    SELECT n.oid, n.nspname
    FROM pg_catalog.pg_namespace n
    WHERE n.nspname !~ '^(pg_|aegis_migrate_of_)' AND n.nspname NOT IN ('information_schema', 'aegis_migrate', 'aegis_ledger')
      AND ($1::text[] IS NULL OR n.nspname = ANY ($1))
      AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_depend e
          WHERE e.classid = 'pg_catalog.pg_namespace'::regclass AND e.objid = n.oid AND e.deptype = 'e'
      )
),
named AS (
    SELECT 'pg_catalog.pg_class'::regclass::oid AS class, coalesce(i.indrelid, c.oid) AS oid
    FROM unnest($2::text[], $3::text[]) AS w (schema, name)
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
    LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
    UNION
    SELECT 'pg_catalog.pg_proc'::regclass::oid, p.oid
    FROM unnest($2::text[], $3::text[]) AS w (schema, name)
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema
    JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid AND p.proname = w.name
    UNION
    SELECT 'pg_catalog.pg_type'::regclass::oid, t.oid
    FROM unnest($2::text[], $3::text[]) AS w (schema, name)
    JOIN pg_catalog.pg_namespace n ON n.nspname = w.schema
    JOIN pg_catalog.pg_type t ON t.typnamespace = n.oid AND t.typname = w.name
),
reached (class, oid) AS (
    SELECT class, oid FROM named
    UNION
    SELECT further.class, further.oid
    FROM reached r
    CROSS JOIN LATERAL (
        -- The partition tree, both ways.
        SELECT r.class AS class, h.inhparent AS oid FROM pg_catalog.pg_inherits h
        WHERE r.class = 'pg_catalog.pg_class'::regclass AND h.inhrelid = r.oid
        UNION ALL
        SELECT r.class, h.inhrelid FROM pg_catalog.pg_inherits h
        WHERE r.class = 'pg_catalog.pg_class'::regclass AND h.inhparent = r.oid
        UNION ALL
        -- A table's row type, through which others depend on the table.
        SELECT 'pg_catalog.pg_type'::regclass, c.reltype FROM pg_catalog.pg_class c
        WHERE r.class = 'pg_catalog.pg_class'::regclass AND c.oid = r.oid AND c.reltype <> 0
        UNION ALL
        SELECT
            CASE
                WHEN con.contypid <> 0 THEN 'pg_catalog.pg_type'::regclass
                WHEN coalesce(rw.ev_class, con.conrelid, tg.tgrelid, ad.adrelid, pol.polrelid, ix.indrelid) IS NOT NULL
                THEN 'pg_catalog.pg_class'::regclass
                ELSE d.classid
            END,
            coalesce(
                rw.ev_class, nullif(con.contypid, 0), con.conrelid, tg.tgrelid, ad.adrelid, pol.polrelid, ix.indrelid, d.objid
            )
        FROM pg_catalog.pg_depend d
        LEFT JOIN pg_catalog.pg_rewrite rw ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND rw.oid = d.objid
        LEFT JOIN pg_catalog.pg_constraint con ON d.classid = 'pg_catalog.pg_constraint'::regclass AND con.oid = d.objid
        LEFT JOIN pg_catalog.pg_trigger tg ON d.classid = 'pg_catalog.pg_trigger'::regclass AND tg.oid = d.objid
        LEFT JOIN pg_catalog.pg_attrdef ad ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND ad.oid = d.objid
        LEFT JOIN pg_catalog.pg_policy pol ON d.classid = 'pg_catalog.pg_policy'::regclass AND pol.oid = d.objid
        LEFT JOIN pg_catalog.pg_index ix ON d.classid = 'pg_catalog.pg_class'::regclass AND ix.indexrelid = d.objid
        WHERE d.refclassid = r.class AND d.refobjid = r.oid AND d.deptype <> 'e'
    ) AS further
),
candidate (class, oid) AS (
    SELECT class, oid FROM reached
    UNION ALL
    SELECT 'pg_catalog.pg_class'::regclass, oid FROM pg_catalog.pg_class WHERE $2::text[] IS NULL
    UNION ALL
    SELECT 'pg_catalog.pg_proc'::regclass, oid FROM pg_catalog.pg_proc WHERE $2::text[] IS NULL
    UNION ALL
    SELECT 'pg_catalog.pg_type'::regclass, oid FROM pg_catalog.pg_type WHERE $2::text[] IS NULL
),
-- Whose object it is, asked one by one: a few objects must not cost a scan of pg_depend.
relation AS (
    SELECT c.oid, c.relkind
    FROM candidate k
    JOIN pg_catalog.pg_class c ON k.class = 'pg_catalog.pg_class'::regclass AND c.oid = k.oid
    JOIN space ON space.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
      AND (
          SELECT count(*) FROM pg_catalog.pg_depend e
          WHERE e.classid = 'pg_catalog.pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e'
      ) = 0
),
function AS (
    SELECT p.oid
    FROM candidate k
    JOIN pg_catalog.pg_proc p ON k.class = 'pg_catalog.pg_proc'::regclass AND p.oid = k.oid
    JOIN space ON space.oid = p.pronamespace
    -- A range's own constructors and an extension's functions come with their owner.
    WHERE (
        SELECT count(*) FROM pg_catalog.pg_depend e
        WHERE e.classid = 'pg_catalog.pg_proc'::regclass AND e.objid = p.oid AND e.deptype IN ('e', 'i')
    ) = 0
),
type AS (
    SELECT t.oid
    FROM candidate k
    JOIN pg_catalog.pg_type t ON k.class = 'pg_catalog.pg_type'::regclass AND t.oid = k.oid
    JOIN space ON space.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
    WHERE t.typtype IN ('e', 'd', 'r', 'b', 'c') AND coalesce(c.relkind = 'c', true)
      -- Arrays come with their element, and say so by an internal dependence.
      AND (
          SELECT count(*) FROM pg_catalog.pg_depend e
          WHERE e.classid = 'pg_catalog.pg_type'::regclass AND e.objid = t.oid
            AND (e.deptype = 'e' OR e.deptype = 'i' AND t.typtype = 'b')
      ) = 0
)
SELECT json_build_object(
    'server_version_num', current_setting('server_version_num')::int,
    'database', current_database(),
    'reader', current_user,
    'taken_at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'spaces', (SELECT coalesce(json_agg(oid::bigint), '[]') FROM space),
    'relations', (SELECT coalesce(json_agg(oid::bigint), '[]') FROM relation WHERE relkind <> 'S'),
    'sequences', (SELECT coalesce(json_agg(oid::bigint), '[]') FROM relation WHERE relkind = 'S'),
    'functions', (SELECT coalesce(json_agg(oid::bigint), '[]') FROM function),
    'types', (SELECT coalesce(json_agg(oid::bigint), '[]') FROM type)
)::text
