-- The guard: the one place that says who may write for a claim. Four CTEs:
-- k, what the caller holds, in id order (the order of locking); i, the lineage as the statement began;
-- l, the rows that still are what the caller holds, locked; g, the owner's lease and the lineage, judged after the locks with
-- fresh eyes.
-- A guarded statement writes only FROM g WHERE g.ok, to rows addressed by = ANY (ARRAY(SELECT id FROM l)).
-- `state + 0`: only the primary key may serve this look-up (the planner believes the index on running rows is empty).
k AS MATERIALIZED (
    SELECT k.id, k.claim_id, k.epoch, k.rev, k.n
    FROM unnest(:ids::uuid[], :claim_ids::uuid[], :epochs::int8[], :revs::int8[]) WITH ORDINALITY AS k (id, claim_id, epoch, rev, n)
    ORDER BY k.id),
i AS MATERIALIZED (SELECT floor, timeline FROM aegis.lineage()),
l AS MATERIALIZED (
    SELECT t.*, k.n FROM i, k, LATERAL (
        SELECT * FROM aegis.task t
        WHERE t.id = k.id AND t.owner = :worker::uuid AND t.claim_id = k.claim_id AND t.epoch = k.epoch AND t.rev = k.rev
          AND t.state + 0 = 2 AND t.floor = i.floor AND t.timeline = i.timeline
        FOR NO KEY UPDATE) t),
g AS MATERIALIZED (
    SELECT aegis.lease_live(:worker::uuid) AND aegis.lineage_is((SELECT floor FROM i), (SELECT timeline FROM i)) AS ok
    FROM (SELECT count(*) AS n FROM l) x WHERE x.n > 0)
