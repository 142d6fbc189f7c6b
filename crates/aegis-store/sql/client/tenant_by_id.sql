-- A tenant's name by its id.
--
-- lock: none
-- index: tenant_pkey
-- fence: none: a read
-- returns: optional
SELECT name FROM aegis.tenant WHERE id = :id::int4
