-- Whether the numbers are there. Before the first change they are not.
SELECT to_regclass('aegis.schema_version') IS NOT NULL
