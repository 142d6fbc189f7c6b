-- What people answer for, the one that lasts longest first. $1 change, $2 attempt.
SELECT a.need, a.by_whom, a.until, a.reason, a.at FROM aegis_migrate.contract_attestation a
WHERE a.change = $1 AND a.attempt = $2 ORDER BY a.need, a.until DESC
