-- Signs that a program knows the new form: the new side was written, or applications were told to use it. $1 change.
SELECT (SELECT count(*) FROM aegis_migrate.sighting s WHERE s.change = $1 AND s.side = 'new') AS sightings,
    (SELECT count(*) FROM aegis_migrate.switch w WHERE w.change = $1 AND 'new' IN (w.reads, w.writes)) AS moves
