-- Whether an approval was used. $1 digest.
SELECT u.change, u.at FROM aegis_migrate.approval_used u WHERE u.digest = $1
