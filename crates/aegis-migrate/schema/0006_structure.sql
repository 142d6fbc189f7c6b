-- What each step did to the structure, element by element: the sum in order is what the database should be.
CREATE TABLE IF NOT EXISTS aegis_migrate.structure (
    at           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The step that did it, as the ledger names it.
    step         text NOT NULL,
    kind         text NOT NULL,
    schema       text NOT NULL,
    name         text NOT NULL,
    part         text NOT NULL,
    -- The element after the step; NULL: the step dropped it.
    shape        jsonb,
    -- Whose words the shape is written in: the server's major version, and the model's.
    server_major int NOT NULL,
    model        int NOT NULL
);
CREATE INDEX IF NOT EXISTS structure_element ON aegis_migrate.structure (kind, schema, name, part, at DESC);
