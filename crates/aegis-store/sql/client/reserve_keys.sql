-- Reserves idempotency keys in key order; answers only the new ones, each with the task id minted for it. What stands under
-- the others is read by a second statement (`find_keys`): beside an uncommitted twin this one cannot see it.
--
-- lock: the new rows, in key order
-- index: idempotency_pkey
-- fence: none: new rows
-- returns: many
INSERT INTO aegis.idempotency (tenant, kind, key, task, payload_hash, expires_at)
SELECT u.tenant, u.kind, u.key, aegis.uuid7(), aegis.payload_hash(u.protocol, :content_type::int2, u.input),
    clock_timestamp() + :keep_ms::int8 * interval '1 ms'
FROM unnest(:tenants::int4[], :kinds::text[], :keys::text[], :protocols::int4[], :inputs::bytea[]) AS u (tenant, kind, key, protocol, input)
ORDER BY u.tenant, u.kind, u.key
ON CONFLICT (tenant, kind, key) DO NOTHING
RETURNING tenant, kind, key, task
