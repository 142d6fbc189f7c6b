-- What goose has applied: the last word about each version. Version 0 is its own. {ledger} is its table, quoted.
SELECT version_id::text, ''::text, NULL::text, tstamp::timestamptz, true
FROM (SELECT DISTINCT ON (version_id) version_id, tstamp, is_applied FROM {ledger} ORDER BY version_id, id DESC) AS last
WHERE is_applied AND version_id > 0
ORDER BY version_id
