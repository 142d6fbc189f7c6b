-- Steps of other changes that touched a table, or another object, after this change had. $1 change.
SELECT DISTINCT later.step FROM aegis_migrate.structure mine
JOIN aegis_migrate.structure later ON later.at > mine.at
    AND ((later.schema, later.name) = (mine.schema, mine.name)
        OR later.shape ->> 'table' IN (mine.schema || '.' || mine.name, format('%I.%I', mine.schema, mine.name)))
WHERE starts_with(mine.step, $1 || ':') AND NOT starts_with(later.step, $1 || ':') ORDER BY 1
