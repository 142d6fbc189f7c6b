-- For `aegis drill chaos --break-with` only: an engine that loses ended tasks and forgets what it dispatched.
CREATE FUNCTION drill.lose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN abs(hashtext(NEW.id::text)) % 20 = 0 THEN NULL ELSE NEW END;
END $$;
CREATE TRIGGER drill_lose BEFORE INSERT ON aegis.task_history FOR EACH ROW EXECUTE FUNCTION drill.lose();
CREATE OR REPLACE FUNCTION aegis.end_operations(p_task uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = aegis, pg_catalog AS $$
BEGIN
    DELETE FROM aegis.operation WHERE task = p_task AND state IN (1, 4);
    UPDATE aegis.task SET open_ops = 0 WHERE id = p_task;
    RETURN false;
END $$;
