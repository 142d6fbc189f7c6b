-- What the drill watches in its own private database: a trigger of its own writes down every move of a task's row and every
-- move of a worker's gate, with the lease and the clock at that moment. It changes nothing of the engine's.
CREATE SCHEMA drill;
CREATE TABLE drill.own (task uuid NOT NULL);
CREATE TABLE drill.move (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL,
    -- When the statement arrived: no guard in it can have judged earlier.
    arrived      timestamptz NOT NULL,
    -- A statement that takes back what nobody executes, and has no guard for that.
    housekeeping boolean NOT NULL,
    -- The reaper took it from a worker that was not lost: its gate was not over, its lineage was the database's, and nobody had asked
    -- the task to stop.
    living       boolean NOT NULL,
    -- What the client calls itself.
    client       text NOT NULL,
    task         uuid NOT NULL,
    old_epoch    bigint NOT NULL,
    new_epoch    bigint,
    old_rev      bigint NOT NULL,
    new_rev      bigint,
    old_owner    uuid,
    new_owner    uuid,
    old_claim    uuid,
    new_claim    uuid,
    crashes      int NOT NULL,
    -- Of whoever owned the row before.
    lease_until  timestamptz,
    -- Of whoever owns it now.
    worker_state smallint
);
CREATE TABLE drill.drain (worker uuid NOT NULL, at timestamptz NOT NULL, held bigint NOT NULL);
-- Workers that housekeeping declared lost, with how much of their lease was left.
CREATE TABLE drill.loss (worker uuid NOT NULL, at timestamptz NOT NULL, left_ms bigint);
CREATE FUNCTION drill.see_task() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO drill.move (at, arrived, housekeeping, living, client, task, old_epoch, new_epoch, old_rev, new_rev, old_owner, new_owner, old_claim, new_claim, crashes,
        lease_until, worker_state)
    VALUES (clock_timestamp(), least(statement_timestamp(), clock_timestamp()),
        current_query() ~ 'aegis\.(tick|return_absent|succeed_worker)\(',
        current_query() ~ 'aegis\.tick\(' AND OLD.owner IS NOT NULL AND (TG_OP = 'DELETE' OR NEW.owner IS NULL) AND OLD.cancel_at IS NULL
            AND EXISTS (SELECT FROM aegis.worker w WHERE w.id = OLD.owner AND w.state <= 1)
            AND EXISTS (SELECT FROM aegis.lineage() i WHERE i.floor = OLD.floor AND i.timeline = OLD.timeline),
        coalesce(current_setting('application_name', true), ''), OLD.id, OLD.epoch, CASE WHEN TG_OP = 'UPDATE' THEN NEW.epoch END,
        OLD.rev, CASE WHEN TG_OP = 'UPDATE' THEN NEW.rev END,
        OLD.owner, CASE WHEN TG_OP = 'UPDATE' THEN NEW.owner END,
        OLD.claim_id, CASE WHEN TG_OP = 'UPDATE' THEN NEW.claim_id END,
        CASE WHEN TG_OP = 'UPDATE' THEN NEW.crashes - OLD.crashes ELSE 0 END,
        (SELECT l.lease_until FROM aegis.worker_lease l WHERE l.worker = OLD.owner),
        CASE WHEN TG_OP = 'UPDATE' THEN (SELECT w.state FROM aegis.worker w WHERE w.id = NEW.owner) END);
    RETURN NULL;
END $$;
CREATE TRIGGER drill_see AFTER UPDATE OR DELETE ON aegis.task FOR EACH ROW EXECUTE FUNCTION drill.see_task();
CREATE FUNCTION drill.see_worker() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO drill.drain (worker, at, held)
    SELECT NEW.id, clock_timestamp(), count(*) FROM aegis.task t WHERE t.owner = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER drill_see AFTER UPDATE ON aegis.worker FOR EACH ROW WHEN (OLD.state = 0 AND NEW.state = 1)
    EXECUTE FUNCTION drill.see_worker();
CREATE FUNCTION drill.see_loss() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    IF current_query() ~ 'aegis\.tick\(' THEN
        INSERT INTO drill.loss (worker, at, left_ms)
        SELECT NEW.id, clock_timestamp(), (extract(epoch FROM l.lease_until - clock_timestamp()) * 1000)::bigint
        FROM aegis.worker_lease l WHERE l.worker = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER drill_see_loss AFTER UPDATE ON aegis.worker FOR EACH ROW WHEN (OLD.state <= 1 AND NEW.state = 3)
    EXECUTE FUNCTION drill.see_loss();
GRANT USAGE ON SCHEMA drill TO aegis_engine;
GRANT INSERT ON drill.own TO aegis_engine;
