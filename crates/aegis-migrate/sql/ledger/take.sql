-- A new epoch for the holder of the mutex. $1 run, $2 holder, $3 fresh when the ledger is made now.
INSERT INTO aegis_migrate.ledger AS l (epoch, run, holder, taken_at, fresh) VALUES (1, $1, $2, clock_timestamp(), $3)
ON CONFLICT (one) DO UPDATE SET epoch = l.epoch + 1, run = excluded.run, holder = excluded.holder, taken_at = excluded.taken_at
RETURNING id, epoch, fresh, dev, min_schema
