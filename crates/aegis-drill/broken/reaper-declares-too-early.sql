-- count: taken_from_the_living
-- A worker counts as lost when a second of its lease is left.
CREATE OR REPLACE FUNCTION aegis.expire_workers() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n int;
BEGIN
    UPDATE aegis.worker k SET state = 3, ended_at = clock_timestamp() FROM aegis.worker_lease l
    WHERE l.worker = k.id AND k.state <= 1 AND l.lease_until <= clock_timestamp() + interval '1 second';
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;
