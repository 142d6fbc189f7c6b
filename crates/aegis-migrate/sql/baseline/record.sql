-- Records a line. The same line with the same hash again is nothing; with another hash it is answered by no row.
INSERT INTO aegis_migrate.baseline AS b (change, phase, sha256, how, actor, reason)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (change, phase) DO UPDATE SET sha256 = b.sha256 WHERE b.sha256 = excluded.sha256
RETURNING change
