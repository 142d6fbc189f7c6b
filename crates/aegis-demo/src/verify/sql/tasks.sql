-- Every task of the run wherever it stands, with what it was given and when it was claimed last and ended.
SELECT a.id::text, a.state, a.epoch, a.error ->> 'code' AS error_code, b.input, b.protocol,
    (extract(epoch FROM aegis.uuid7_time(a.id)) * 1000)::int8 AS submitted_ms,
    (extract(epoch FROM a.claimed_at) * 1000)::int8 AS claimed_ms,
    (extract(epoch FROM a.finished_at) * 1000)::int8 AS finished_ms
FROM aegis.task_any a JOIN aegis.tenant t ON t.id = a.tenant LEFT JOIN aegis.input_any b ON b.id = a.id
WHERE t.name = $1::text ORDER BY a.id
