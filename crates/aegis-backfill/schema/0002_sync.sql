-- Who writes which side of a table whose two sides a generated trigger keeps alike.
CREATE TABLE IF NOT EXISTS aegis_migrate.sighting (
    change           text NOT NULL,
    side             text NOT NULL CHECK (side IN ('old', 'new')),
    application_name text NOT NULL,
    role             text NOT NULL,
    minute           timestamptz NOT NULL
);
-- Not unique on purpose: a unique key would let one writer wait for another's transaction.
CREATE INDEX IF NOT EXISTS sighting_of ON aegis_migrate.sighting (change, side, minute, application_name, role);

-- Told by the trigger, once per session and minute: what was told stands in a setting of the session, which a rollback takes back
-- together with the row. With its owner's rights, so that a writer needs none here. Anybody may call it: a false sighting can only
-- keep a contract from being run.
CREATE OR REPLACE FUNCTION aegis_migrate.sight(of_change text, of_side text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
    app text := current_setting('application_name');
    -- SET ROLE is what the writer is; the role of this function is its owner's.
    who text := coalesce(nullif(current_setting('role'), 'none'), session_user);
    this_minute timestamptz := date_trunc('minute', clock_timestamp());
    setting text := 'aegis_migrate.sighted_' || of_side || '_' || md5(of_change);
    told text := concat_ws(' ', extract(epoch FROM this_minute), who, app);
BEGIN
    IF current_setting(setting, true) = told THEN
        RETURN;
    END IF;
    -- Whoever is SERIALIZABLE asks nothing: two that have looked for one another's row would be refused for it (40001).
    IF current_setting('transaction_isolation') = 'serializable' OR NOT EXISTS (
        SELECT FROM aegis_migrate.sighting s
        WHERE (s.change, s.side, s.minute, s.application_name, s.role) = (of_change, of_side, this_minute, app, who)
    ) THEN
        INSERT INTO aegis_migrate.sighting (change, side, application_name, role, minute)
        VALUES (of_change, of_side, app, who, this_minute);
    END IF;
    PERFORM set_config(setting, told, false);
END;
$body$;
GRANT USAGE ON SCHEMA aegis_migrate TO PUBLIC;
GRANT EXECUTE ON FUNCTION aegis_migrate.sight(text, text) TO PUBLIC;
