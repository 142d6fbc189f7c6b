-- The edition of the tables that are here.
SELECT coalesce(max(number), 0) AS number FROM aegis_migrate.edition
