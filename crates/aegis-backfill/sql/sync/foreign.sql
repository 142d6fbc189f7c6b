-- What the expressions of views call that belongs to somebody else, who could change it: {schema} and {views} (the beginning of their
-- names) are literals. In a batch, so without parameters.
SELECT 'foreign', pg_describe_object(d.refclassid, d.refobjid, 0), o.owner::regrole::text
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = {schema}
JOIN pg_rewrite r ON r.ev_class = c.oid
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
JOIN LATERAL (
    SELECT p.proowner AS owner FROM pg_proc p WHERE d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
    UNION ALL
    SELECT p.oprowner FROM pg_operator p WHERE d.refclassid = 'pg_operator'::regclass AND p.oid = d.refobjid
) o ON true
JOIN pg_roles w ON w.oid = o.owner
WHERE starts_with(c.relname, {views}) AND NOT w.rolsuper
  AND NOT pg_has_role(o.owner, current_user, 'MEMBER') AND NOT pg_has_role(o.owner, n.nspowner, 'MEMBER')
ORDER BY 2;
