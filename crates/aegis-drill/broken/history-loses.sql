-- count: lost
-- One ended task in twenty is nowhere.
CREATE FUNCTION drill.lose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN abs(hashtext(NEW.id::text)) % 20 = 0 THEN NULL ELSE NEW END;
END $$;
CREATE TRIGGER drill_lose BEFORE INSERT ON aegis.task_history FOR EACH ROW EXECUTE FUNCTION drill.lose();
