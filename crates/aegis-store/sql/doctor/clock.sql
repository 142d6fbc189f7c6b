-- The database's clock, and what it wrote that lies in its future: it was set back.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT clock_timestamp() AS now,
    (SELECT count(*) FROM aegis.worker_lease l WHERE l.lease_until > clock_timestamp() + 2 * l.ttl_ms * interval '1 ms') AS leases,
    (SELECT count(*) FROM aegis.housekeeping h WHERE isfinite(h.next_at) AND h.next_at > clock_timestamp() + 2 * h.period_ms * interval '1 ms' + interval '15 min') AS jobs,
    (SELECT count(*) FROM aegis.database d WHERE d.up_since > clock_timestamp() + interval '5 s') AS ups
