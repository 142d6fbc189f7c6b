-- Whether an approval is bound to this attempt. $1 digest, $2 change, $3 attempt.
SELECT b.at FROM aegis_migrate.contract_bound b WHERE b.digest = $1 AND b.change = $2 AND b.attempt = $3
