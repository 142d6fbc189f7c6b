-- void: taken_back_by_the_reaper
-- Who has no tasks of its own does no housekeeping: the reaper process takes no job, and the workers do all of it.
CREATE OR REPLACE FUNCTION aegis.take_job(p_job text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('application_name') LIKE 'reaper-%' THEN
        RETURN false;
    END IF;
    UPDATE aegis.housekeeping SET next_at = clock_timestamp() + period_ms * interval '1 ms'
    WHERE job = ANY (ARRAY(SELECT job FROM aegis.housekeeping WHERE job = p_job AND next_at <= clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED));
    RETURN FOUND;
END $$;
