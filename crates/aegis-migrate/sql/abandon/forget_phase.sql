-- An expand that was taken back is not applied. $1 change.
DELETE FROM aegis_migrate.phase p WHERE p.change = $1 AND p.phase = 'expand'
