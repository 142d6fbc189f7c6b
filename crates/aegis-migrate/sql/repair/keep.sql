-- Keeps what somebody changed in the ledger. $1 verb, $2 change, $3 phase, $4 was, $5 becomes, $6 proof, $7 by_whom, $8 reason, $9 run, $10 epoch.
INSERT INTO aegis_migrate.repair (verb, change, phase, was, becomes, proof, by_whom, reason, run, epoch)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
