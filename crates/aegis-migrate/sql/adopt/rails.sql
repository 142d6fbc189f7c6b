-- What Rails has applied: versions, and nothing more. {ledger} is its table, quoted.
SELECT version::text, ''::text, NULL::text, NULL::timestamptz, true
FROM {ledger}
ORDER BY version
