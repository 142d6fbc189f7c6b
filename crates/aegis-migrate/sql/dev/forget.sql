-- Everything that was applied here goes, and what was kept about it.
TRUNCATE aegis_migrate.phase, aegis_migrate.step, aegis_migrate.baseline, aegis_migrate.structure;
-- A job of rows that are gone would be taken for done. There is none where only structure was ever applied.
DO $$
BEGIN
    IF to_regclass('aegis_migrate.backfill') IS NOT NULL THEN
        TRUNCATE aegis_migrate.backfill, aegis_migrate.backfill_leaf, aegis_migrate.backfill_failure;
    END IF;
END;
$$
