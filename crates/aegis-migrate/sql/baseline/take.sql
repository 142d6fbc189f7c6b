-- A new epoch, which fences whoever believes to run here. What has a structure already is not fresh. $1 run, $2 holder.
INSERT INTO aegis_migrate.ledger AS l (epoch, run, holder, taken_at, fresh) VALUES (1, $1, $2, clock_timestamp(), false)
ON CONFLICT (one) DO UPDATE SET epoch = l.epoch + 1, run = excluded.run, holder = excluded.holder, taken_at = excluded.taken_at, fresh = false
RETURNING epoch
