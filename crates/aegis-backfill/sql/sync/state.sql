-- The trigger of a change as it is: $1 schema, $2 table, $3 the beginning of its triggers' names. No row: there is none.
-- A partition has copies of its own, which it can disable by itself.
WITH RECURSIVE own AS (
    SELECT t.oid, t.xmin, t.tgname, t.tgtype, t.tgattr, t.tgqual, t.tgenabled, t.tgfoid
    FROM pg_trigger t
    JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2 AND NOT t.tgisinternal AND starts_with(t.tgname, $3)
), below AS (
    SELECT t.oid, t.tgenabled FROM pg_trigger t JOIN own ON t.tgparentid = own.oid
    UNION ALL
    SELECT t.oid, t.tgenabled FROM pg_trigger t JOIN below ON t.tgparentid = below.oid
)
SELECT bool_and(t.tgenabled IN ('O', 'A')) AND count(*) = 2
           AND NOT EXISTS (SELECT FROM below WHERE below.tgenabled NOT IN ('O', 'A')) AS enabled,
       -- xmin too: disabled and enabled again, it is not the one that was there all the time.
       -- From what is stored and not from what is printed: that depends on the reader's search_path.
       encode(sha256(convert_to(string_agg(
           concat_ws(E'\n', t.xmin, f.xmin, t.tgname, t.tgtype, t.tgattr, t.tgqual, f.proname, f.prosrc, f.prosecdef, f.proconfig, f.proowner::regrole),
           E'\n' ORDER BY t.tgname), 'UTF8')), 'hex') AS definition
FROM own t
JOIN pg_proc f ON f.oid = t.tgfoid
HAVING count(*) > 0
