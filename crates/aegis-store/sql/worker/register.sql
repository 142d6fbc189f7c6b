-- Registers a new incarnation: its gate row, its lease and its capabilities. Naming a predecessor turns the crashes
-- charged to that one into interruptions. Answers the first lease's end.
--
-- lock: the predecessor's gate row, then the rows of tasks whose loss was charged to it, in id order
-- index: worker_pkey, task_event_crash, task_pkey
-- fence: none: new rows
-- returns: one
WITH w AS (
    INSERT INTO aegis.worker (id, slots, pid, predecessor, registered_at, name, host, release, build, digest, schema)
    VALUES (:worker::uuid, :slots::int4, :pid::int4, :predecessor?::uuid, clock_timestamp(), :name::text, :host::text, :release::text,
        :build::text, :digest::text, :schema::int4)),
c AS (
    INSERT INTO aegis.worker_capability (worker, queue, kind, reads_min, reads_max, writes, slots)
    SELECT :worker::uuid, c.* FROM unnest(:queues::text[], :kinds::text[], :reads_min::int4[], :reads_max::int4[], :writes::int4[],
        :kind_slots::int4[]) AS c (queue, kind, reads_min, reads_max, writes, slots)),
l AS (
    INSERT INTO aegis.worker_lease (worker, lease_until, ttl_ms, beat_at)
    VALUES (:worker::uuid, clock_timestamp() + :ttl_ms::int8 * interval '1 ms', :ttl_ms::int8, clock_timestamp())
    RETURNING lease_until)
SELECT l.lease_until, CASE WHEN :predecessor?::uuid IS NULL THEN 0 ELSE aegis.succeed_worker(:predecessor?::uuid) END AS forgiven FROM l
