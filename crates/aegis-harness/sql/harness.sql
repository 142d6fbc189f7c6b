-- The controlled clock of a private database. The database's clock decides everything in Aegis and cannot be set, so time
-- passes by the other way round: everything that was stored moves into the past, in one statement.
CREATE SCHEMA aegis_harness;

-- Lets `p_ms` pass. Every time in the engine's tables moves, also of tables and columns that are younger than this function,
-- except:
--   leases and beats of workers that are alive (not in `p_dead`): they would have renewed;
--   `housekeeping.next_at`: a job falls due instead of being overdue, which would look like an outage of the database;
--   `database.postmaster_started`: compared with the server's own;
--   the schema's own ledger.
-- `task.ord` moves too: it is a moment, in microseconds.
CREATE FUNCTION aegis_harness.advance(p_ms bigint, p_dead uuid[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    c record;
    by_interval interval := p_ms * interval '1 ms';
BEGIN
    FOR c IN
        SELECT a.attrelid::regclass AS place, r.relname,
            string_agg(format('%I = %I - $1', a.attname, a.attname), ', ' ORDER BY a.attnum) AS moves
        FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid JOIN pg_namespace n ON n.oid = r.relnamespace
        WHERE n.nspname = 'aegis' AND r.relkind IN ('r', 'p') AND NOT r.relispartition AND NOT a.attisdropped
            AND a.atttypid = 'timestamptz'::regtype AND r.relname !~ '^schema_'
            AND NOT (r.relname = 'housekeeping' AND a.attname = 'next_at')
            AND NOT (r.relname = 'database' AND a.attname = 'postmaster_started')
        GROUP BY 1, 2
    LOOP
        IF c.relname = 'worker_lease' THEN
            EXECUTE format('UPDATE %s SET %s WHERE worker = ANY ($2) OR worker IN (SELECT id FROM aegis.worker WHERE state >= 2)',
                c.place, c.moves) USING by_interval, p_dead;
        ELSE
            EXECUTE format('UPDATE %s SET %s', c.place, c.moves) USING by_interval;
        END IF;
    END LOOP;
    UPDATE aegis.task SET ord = ord - p_ms * 1000;
    UPDATE aegis.housekeeping SET next_at = greatest(next_at - by_interval, least(next_at, clock_timestamp()));
END $$;
