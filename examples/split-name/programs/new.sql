-- The version that comes next: it knows `first_name` and `last_name`.
\set id random(1, :rows)
UPDATE app.users SET first_name = 'Barbara', last_name = 'Liskov ' || :id WHERE id = :id;
INSERT INTO app.users (first_name, last_name) VALUES ('Anita', 'Borg');
