-- Keeps an event of a build that has no mutex: as long as its process holds the lock of its change. $1 run, $2 epoch, $3 event, $4 process,
-- $5 change.
INSERT INTO aegis_migrate.event (run, epoch, event)
SELECT $1, $2, $3 WHERE EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1634035563 AND l.objid = (hashtext($5)::bigint & 4294967295)::oid AND l.objsubid = 2
      AND l.granted AND l.pid = $4
)
