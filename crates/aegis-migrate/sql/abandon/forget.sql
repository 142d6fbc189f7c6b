-- The steps of an expand that was taken back; what they were stands in the row of the repair. $1 change.
DELETE FROM aegis_migrate.step s WHERE s.change = $1 AND s.phase = 'expand'
