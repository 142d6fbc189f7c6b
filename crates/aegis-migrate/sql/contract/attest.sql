-- Keeps what a person answers for. $1 change, $2 attempt, $3 need, $4 by, $5 until, $6 reason, $7 envelope.
INSERT INTO aegis_migrate.contract_attestation (change, attempt, need, by_whom, until, reason, envelope)
VALUES ($1, $2, $3, $4, $5, $6, $7)
