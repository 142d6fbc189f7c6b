-- How many tasks have neither ended nor wait for a person.
SELECT count(*) FROM aegis.task t JOIN aegis.lane l ON l.id = t.lane WHERE l.kind = 'drill' AND t.state <> 4
