-- Waits for the end of a transaction that moves the switch of a change: `switch/alone.sql` of aegis-migrate holds the same lock. A
-- statement of its own, so that the next one sees what was moved. $1 change.
SELECT pg_advisory_xact_lock_shared(1634035564, hashtext($1))
