-- Jobs with how late they are. `workers`: somebody is there to take them.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
-- nullable: late_s
SELECT h.job, h.period_ms, CASE WHEN isfinite(h.next_at) THEN extract(epoch FROM clock_timestamp() - h.next_at)::float8 END AS late_s,
    (SELECT count(*) FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id WHERE w.state <= 1 AND l.lease_until > clock_timestamp()) AS workers
FROM aegis.housekeeping h WHERE h.job <> 'suspect' ORDER BY h.job
