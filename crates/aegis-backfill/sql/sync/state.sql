-- The trigger of a change as it is: $1 schema, $2 table, $3 the beginning of its triggers' names. No row: there is none.
-- Over the whole tree: a partition has copies of its own, which it can disable by itself, and an heir has none at all.
WITH RECURSIVE own AS (
    SELECT t.oid, t.xmin, t.tgrelid, t.tgname, t.tgtype, t.tgattr, t.tgqual, t.tgenabled, t.tgfoid
    FROM pg_trigger t
    JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2 AND NOT t.tgisinternal AND starts_with(t.tgname, $3)
), below AS (
    SELECT t.oid, t.xmin, t.tgrelid, t.tgenabled, own.xmin AS own_xmin FROM pg_trigger t JOIN own ON t.tgparentid = own.oid
    UNION ALL
    SELECT t.oid, t.xmin, t.tgrelid, t.tgenabled, below.own_xmin FROM pg_trigger t JOIN below ON t.tgparentid = below.oid
), tree AS (
    SELECT DISTINCT tgrelid AS oid FROM own
    UNION
    SELECT i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid AND NOT i.inhdetachpending
), touched AS (
    -- Copies that were not made with the trigger itself, nor with a partition that was born as one and so had no row of before. A partition
    -- that was attached has columns that the attaching has written again; one that was born has some that are as old as itself.
    SELECT string_agg(DISTINCT b.xmin::text, ' ' ORDER BY b.xmin::text) AS by
    FROM below b
    JOIN pg_attribute birth ON birth.attrelid = b.tgrelid AND birth.attnum = -1
    WHERE b.xmin <> b.own_xmin
      AND NOT (b.xmin = birth.xmin AND EXISTS (
          SELECT FROM pg_attribute a
          WHERE a.attrelid = b.tgrelid AND a.attnum > 0 AND a.xmin = birth.xmin AND a.cmin = birth.cmin))
)
SELECT bool_and(t.tgenabled IN ('O', 'A')) AND count(*) = 2
           AND NOT EXISTS (SELECT FROM below WHERE below.tgenabled NOT IN ('O', 'A')) AS enabled,
       ARRAY (SELECT tree.oid::regclass::text FROM tree
              WHERE (SELECT count(*) FROM own WHERE own.tgrelid = tree.oid) + (SELECT count(*) FROM below WHERE below.tgrelid = tree.oid)
                    < (SELECT count(*) FROM own)
              ORDER BY 1) AS uncovered,
       -- xmin too: disabled and enabled again, it is not the one that was there all the time.
       -- From what is stored and not from what is printed: that depends on the reader's search_path.
       encode(sha256(convert_to(concat(string_agg(
           concat_ws(E'\n', t.xmin, f.xmin, t.tgname, t.tgtype, t.tgattr, t.tgqual, f.proname, f.prosrc, f.prosecdef, f.proconfig, f.proowner::regrole),
           E'\n' ORDER BY t.tgname), (SELECT E'\n' || by FROM touched)), 'UTF8')), 'hex') AS definition,
       min(f.prosrc) AS body
FROM own t
JOIN pg_proc f ON f.oid = t.tgfoid
HAVING count(*) > 0
