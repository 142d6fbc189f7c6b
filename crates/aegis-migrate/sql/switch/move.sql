-- Moves a change's switch from the rev that was seen. $1 change, $2 rev seen, $3 reads, $4 writes, $5 cache_ttl_ms, $6 release, $7 by, $8 reason.
-- Two movers at once: the second meets the primary key (23505).
-- A backfill under way gets a new epoch in the same commit: a batch that began before it is committed before it, or not at all. Waits for
-- a batch that is being committed: it has the job's row.
WITH fenced AS (
    UPDATE aegis_migrate.backfill SET epoch = epoch + 1, updated_at = clock_timestamp()
    WHERE change = $1 AND state IN ('running', 'paused')
)
INSERT INTO aegis_migrate.switch (change, rev, reads, writes, cache_ttl_ms, release, made_by, reason)
VALUES ($1, $2 + 1, $3, $4, $5, $6, $7, $8)
RETURNING rev, at + make_interval(secs => cache_ttl_ms / 1000.0) AS counts_from
