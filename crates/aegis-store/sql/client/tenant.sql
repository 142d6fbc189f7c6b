-- The id of a tenant, made when it is new (a short transaction of its own).
--
-- lock: the new row
-- index: tenant_name_key
-- fence: none: a dictionary
-- returns: one
SELECT aegis.tenant_id(:name::text) AS id
