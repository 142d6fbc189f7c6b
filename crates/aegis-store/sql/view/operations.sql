-- Operations by state, tenant, name, class and age, the oldest dispatch first.
--
-- lock: none
-- index: operation_open when only dispatched or unknown ones are asked for
-- fence: none: a read
-- returns: many
-- nullable: worker, release, first_dispatched_at, dispatched_at, quiet_until, finished_at, note, taken_by, taken_at, resolution, resolved_by, resolved_at, evidence
SELECT o.task, o.id, e.name AS tenant, o.name, o.key, o.class, o.state, o.dispatches, o.epoch, o.worker, o.release, o.first_dispatched_at,
    o.dispatched_at, o.quiet_until, o.finished_at, o.note, o.taken_by, o.taken_at, o.resolution, o.resolved_by, o.resolved_at, o.evidence
FROM aegis.operation o JOIN aegis.tenant e ON e.id = o.tenant
WHERE o.state = ANY (:states::int2[]) AND (:task?::uuid IS NULL OR o.task = :task?::uuid)
    AND (:tenant?::text IS NULL OR e.name = :tenant?::text) AND (:name?::text IS NULL OR o.name = :name?::text)
    AND (:class?::int2 IS NULL OR o.class = :class?::int2)
    AND (:older_than_s?::float8 IS NULL OR o.dispatched_at < clock_timestamp() - :older_than_s?::float8 * interval '1 s')
ORDER BY o.dispatched_at, o.task, o.id LIMIT :limit::int8
