-- What this run had begun outside of a transaction before it let others have the mutex: it goes on under its new epoch, as one attempt.
-- $1 the epoch of before, $2 the new one.
UPDATE aegis_migrate.step SET epoch = $2 WHERE state = 'intent' AND epoch = $1
