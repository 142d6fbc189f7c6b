-- What a step did, in its transaction: $1 the step, $2 to $5 the elements, $6 their shapes (NULL: dropped), $7 and $8 whose words.
INSERT INTO aegis_migrate.structure (step, kind, schema, name, part, shape, server_major, model)
SELECT $1, e.kind, e.schema, e.name, e.part, e.shape::jsonb, $7, $8
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    WITH ORDINALITY AS e (kind, schema, name, part, shape, place)
ORDER BY e.place
