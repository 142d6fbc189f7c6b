-- One line of another tool's ledger, kept as it was. Again the same is nothing.
INSERT INTO aegis_migrate.adopted (tool, ledger, version, description, checksum, applied_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (ledger, version, description) DO NOTHING
