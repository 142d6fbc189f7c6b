-- Which columns of the table the expressions of views read, and which views read what nobody can tell by column: {schema}, {table} and
-- {views} (the beginning of their names) are literals. In a batch, so without parameters.
-- The server itself notes a column that a rule names. It notes none for a whole row, and a trigger before the write does not see what a
-- generated column will be: of both it is not known what they read.
WITH rule AS (
    SELECT c.relname AS view, r.oid, r.ev_action
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = {schema}
    JOIN pg_rewrite r ON r.ev_class = c.oid
    WHERE starts_with(c.relname, {views})
), named AS (
    SELECT rule.view, a.attname AS name, a.attgenerated <> '' AS is_generated
    FROM rule
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = rule.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
    JOIN pg_class t ON t.oid = d.refobjid AND t.relname = {table}
    JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = {schema}
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
)
SELECT 'reads', view, name FROM named
UNION ALL
SELECT 'reads anything', view, '' FROM rule WHERE ev_action::text LIKE '%:varattno 0 %'
UNION ALL
SELECT 'reads anything', view, '' FROM named WHERE is_generated;
