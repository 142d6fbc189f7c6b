-- Whether this session holds the mutex. $1 the ledger.
SELECT EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 1634035561 AND l.objid = $1::int4::oid AND l.objsubid = 2
    AND l.granted AND l.pid = pg_backend_pid()) AS held
