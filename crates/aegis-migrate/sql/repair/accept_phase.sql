-- A phase that is whole belongs to another hash of its line. $1 change, $2 phase, $3 the new hash.
UPDATE aegis_migrate.phase SET line_sha256 = $3 WHERE change = $1 AND phase = $2
