-- The version that runs today: it knows `name`.
\set id random(1, :rows)
UPDATE app.users SET name = 'Ada ' || chr(65 + (:id % 26)::int) || '. Lovelace' WHERE id = :id;
INSERT INTO app.users (name) VALUES ('Grace Hopper');
