-- Which side of a change is read and written: moved by people, read by applications. Rows are added, never edited: the newest counts.
CREATE TABLE IF NOT EXISTS aegis_migrate.switch (
    change       text NOT NULL,
    rev          int NOT NULL CHECK (rev >= 1),
    reads        text NOT NULL CHECK (reads IN ('old', 'new')),
    writes       text NOT NULL CHECK (writes IN ('old', 'new')),
    cache_ttl_ms int NOT NULL CHECK (cache_ttl_ms BETWEEN 0 AND 86400000),
    release      text NOT NULL,
    made_by      text NOT NULL,
    reason       text NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (change, rev)
);

-- What an application asks, and may keep for `cache_ttl_ms`. Before the first move both sides are old. A change of which nothing was
-- applied here is an error: a wrong id would be told the old side for ever.
-- With its owner's rights: an application needs no grant on the tables of this schema.
CREATE OR REPLACE FUNCTION aegis_migrate.switched(of_change text)
RETURNS TABLE (reads text, writes text, rev int, cache_ttl_ms int)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT w.reads, w.writes, w.rev, w.cache_ttl_ms FROM aegis_migrate.switch w
        WHERE w.change = of_change ORDER BY w.rev DESC LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM aegis_migrate.phase p WHERE p.change = of_change)
        AND NOT EXISTS (SELECT FROM aegis_migrate.step s WHERE s.change = of_change)
    THEN
        RAISE EXCEPTION 'nothing of a change % is applied in this database', quote_nullable(of_change)
            USING ERRCODE = 'undefined_object', HINT = 'The id is that of change.toml; `aegis migrate status` lists what is applied.';
    END IF;
    RETURN QUERY VALUES ('old', 'old', 0, 0);
END;
$body$;

GRANT USAGE ON SCHEMA aegis_migrate TO PUBLIC;
GRANT EXECUTE ON FUNCTION aegis_migrate.switched(text) TO PUBLIC;
