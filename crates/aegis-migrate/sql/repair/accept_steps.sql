-- The steps of a phase belong to another hash of its line; their statements stay what they were. $1 change, $2 phase, $3 the new hash.
UPDATE aegis_migrate.step SET line_sha256 = $3 WHERE change = $1 AND phase = $2
