-- A unique index that a keyset can walk: $1 a table's oid, $2 the names of the key in order. No row: there is none.
SELECT i.indexrelid::regclass::text AS index
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indisready AND i.indpred IS NULL AND i.indexprs IS NULL
  AND i.indnkeyatts = cardinality($2::text[])
  AND $2::text[] = (
      SELECT array_agg(a.attname::text ORDER BY k.at)
      FROM unnest(i.indkey::int2[], i.indclass::oid[], i.indcollation::oid[]) WITH ORDINALITY AS k (att, class, coll, at)
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.att AND (k.coll = 0 OR k.coll = a.attcollation)
      JOIN pg_opclass o ON o.oid = k.class AND o.opcdefault
      WHERE k.at <= i.indnkeyatts
  )
LIMIT 1
