-- count: blind_repeated out_of_order
-- cuts: 1
-- When a claim ends, the ledger forgets what it had sent and nobody answered.
CREATE OR REPLACE FUNCTION aegis.end_operations(p_task uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = aegis, pg_catalog AS $$
BEGIN
    DELETE FROM aegis.operation WHERE task = p_task AND state IN (1, 4);
    UPDATE aegis.task SET open_ops = 0 WHERE id = p_task;
    RETURN false;
END $$;
