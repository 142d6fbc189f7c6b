-- What refinery has applied; it writes a row only when the migration is through. {ledger} is its table, quoted.
SELECT version::text, name::text, checksum::text, applied_on::timestamptz, true
FROM {ledger}
ORDER BY version
