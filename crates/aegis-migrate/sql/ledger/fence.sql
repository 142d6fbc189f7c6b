-- In the transaction of every write: locks the ledger's row against a newer epoch until it commits. No row: fenced. $1 epoch.
SELECT 1 FROM aegis_migrate.ledger l WHERE l.epoch = $1 FOR SHARE
