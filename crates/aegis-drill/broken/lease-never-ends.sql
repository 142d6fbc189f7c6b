-- count: late_accepted
-- The guard looks at no lease: whoever still stands in the row may write.
CREATE OR REPLACE FUNCTION aegis.lease_live(p_worker uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN true;
END $$;
