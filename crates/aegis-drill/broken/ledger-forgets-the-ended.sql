-- count: phantom
-- The ledger loses the operations of one ended task in twenty.
CREATE FUNCTION drill.forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF abs(hashtext(NEW.id::text)) % 20 = 0 THEN
        DELETE FROM aegis.operation WHERE task = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER drill_forget AFTER INSERT ON aegis.task_history FOR EACH ROW EXECUTE FUNCTION drill.forget();
