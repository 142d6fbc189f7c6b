-- The ledger as it is, for who only looks.
SELECT l.id, l.epoch, l.run, l.holder, l.taken_at, l.fresh, l.dev, l.min_schema FROM aegis_migrate.ledger l
