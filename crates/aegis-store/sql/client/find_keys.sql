-- What stands under used idempotency keys, and whether the given payload is the one they were used with.
--
-- lock: none
-- index: idempotency_pkey
-- fence: none: a read
-- returns: many
SELECT u.n AS position, i.task, i.payload_hash = aegis.payload_hash(u.protocol, :content_type::int2, u.input) AS same
FROM unnest(:tenants::int4[], :kinds::text[], :keys::text[], :protocols::int4[], :inputs::bytea[])
    WITH ORDINALITY AS u (tenant, kind, key, protocol, input, n)
JOIN aegis.idempotency i ON i.tenant = u.tenant AND i.kind = u.kind AND i.key = u.key
