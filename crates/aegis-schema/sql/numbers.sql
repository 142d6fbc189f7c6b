-- The number of the schema, and the lowest that a program must know. Once `aegis.schema_version` is there.
SELECT v.schema, v.min_schema FROM aegis.schema_version v
