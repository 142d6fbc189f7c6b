-- The columns of a table, $1 its schema and $2 its name: what a trigger on them has to know.
SELECT a.attname AS name,
       format_type(a.atttypid, a.atttypmod) AS type,
       -- Whether two values can be compared: json and the geometric ones have no equality.
       EXISTS (
           SELECT FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod
           WHERE m.amname IN ('btree', 'hash') AND o.opcdefault
             -- The equality of another schema is not found where the trigger looks: such types are compared as text.
             AND o.opcnamespace = 'pg_catalog'::regnamespace
             AND (o.opcintype = base.oid
                  OR (base.typcategory = 'A' AND o.opcintype = 'anyarray'::regtype)
                  OR (base.typtype = 'e' AND o.opcintype = 'anyenum'::regtype)
                  OR (base.typtype = 'r' AND o.opcintype = 'anyrange'::regtype)
                  OR (base.typtype = 'm' AND o.opcintype = 'anymultirange'::regtype)
                  OR (base.typname = 'varchar' AND o.opcintype = 'text'::regtype))
       ) AS compares,
       CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END AS default,
       a.attnotnull AS not_null,
       a.attgenerated <> '' OR a.attidentity = 'a' AS written_by_the_server,
       c.relkind = 'p' AND a.attnum = ANY (p.partattrs::int2[]) AS is_partition_key
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
-- A domain over a domain is resolved by its base type's name only two deep; deeper ones are compared as text, which is slower and right.
LEFT JOIN pg_type d1 ON t.typtype = 'd' AND d1.oid = t.typbasetype
LEFT JOIN pg_type d2 ON d1.typtype = 'd' AND d2.oid = d1.typbasetype
JOIN pg_type base ON base.oid = coalesce(d2.oid, d1.oid, t.oid)
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_partitioned_table p ON p.partrelid = c.oid
WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')
ORDER BY a.attnum
