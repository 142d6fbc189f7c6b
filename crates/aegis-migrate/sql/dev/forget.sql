-- Everything that was applied here goes, and what was kept about it.
TRUNCATE aegis_migrate.phase, aegis_migrate.step, aegis_migrate.baseline, aegis_migrate.structure
