-- A fresh database that was made with the contract has no old side. $1 change, $2 cache_ttl_ms, $3 release, $4 by.
INSERT INTO aegis_migrate.switch (change, rev, reads, writes, cache_ttl_ms, release, made_by, reason)
VALUES ($1, 1, 'new', 'new', $2, $3, $4, 'made fresh, without an old side') ON CONFLICT DO NOTHING
