-- count: taken_from_the_living
-- The reaper asks nobody whether the owner is lost: it takes one running row in five back, whoever has it.
CREATE OR REPLACE FUNCTION aegis.reap(p_page int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r record;
    n int := 0;
BEGIN
    FOR r IN SELECT t.id, t.owner FROM aegis.task t WHERE t.state = 2 ORDER BY t.id LIMIT p_page FOR NO KEY UPDATE OF t SKIP LOCKED LOOP
        CONTINUE WHEN abs(hashtext(r.id::text)) % 5 <> 0 AND EXISTS (SELECT FROM aegis.worker w WHERE w.id = r.owner AND w.state <= 1);
        PERFORM aegis.end_attempt(r.id, 'interruption');
        n := n + 1;
    END LOOP;
    RETURN n;
END $$;
