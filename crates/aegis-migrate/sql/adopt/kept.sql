-- What was adopted from a ledger.
SELECT version, description, checksum FROM aegis_migrate.adopted WHERE ledger = $1
