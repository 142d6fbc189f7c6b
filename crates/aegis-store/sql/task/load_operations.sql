-- All operations of a task, as its handler needs them to answer or to go on.
--
-- lock: none
-- index: operation_pkey
-- fence: none: a read
-- returns: many
-- nullable: quiet_ms_left, key_ms_left, result, note, resolution
SELECT id, name, key, class, state, dispatches, protocol, content_type, fingerprint, result, note, resolution,
    CASE WHEN quiet_until > clock_timestamp() THEN ceil(extract(epoch FROM quiet_until - clock_timestamp()) * 1000)::int8 END AS quiet_ms_left,
    CASE WHEN key_valid_until IS NOT NULL THEN (extract(epoch FROM key_valid_until - clock_timestamp()) * 1000)::int8 END AS key_ms_left
FROM aegis.operation WHERE task = :id::uuid
