-- What sqlx has applied. A row with success = false is one that was cut short. {ledger} is its table, quoted.
SELECT version::text, description::text, encode(checksum, 'hex'), installed_on::timestamptz, success
FROM {ledger}
ORDER BY version
