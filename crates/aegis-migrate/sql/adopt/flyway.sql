-- What Flyway has applied; schemas and undone versions are none. {ledger} is its table, quoted.
SELECT version::text, description::text, checksum::text, installed_on::timestamptz, success
FROM {ledger} h
WHERE upper(type) NOT IN ('SCHEMA', 'DELETE') AND upper(type) NOT LIKE 'UNDO%'
  AND NOT EXISTS (
    SELECT FROM {ledger} later
    WHERE later.version = h.version AND later.installed_rank > h.installed_rank
      AND (upper(later.type) LIKE 'UNDO%' OR upper(later.type) = 'DELETE') AND later.success)
  AND NOT EXISTS (
    SELECT FROM {ledger} later
    WHERE later.version IS NULL AND h.version IS NULL
      AND later.description = h.description AND later.installed_rank > h.installed_rank)
ORDER BY installed_rank
