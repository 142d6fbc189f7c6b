-- Whether the ledger is there, and whether anybody's objects are: a database without either is fresh. $1: only objects in
-- these schemas count; NULL: in all.
SELECT to_regclass('aegis_migrate.ledger') IS NOT NULL AS made,
    to_regclass('aegis_migrate.edition') IS NOT NULL AS numbered,
    EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'aegis_migrate', 'aegis_ledger') AND n.nspname !~ '^(pg_(toast|temp)|aegis_migrate_of_)'
          AND ($1::text[] IS NULL OR n.nspname = ANY ($1))
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')) AS used
