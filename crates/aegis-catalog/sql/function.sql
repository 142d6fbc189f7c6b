-- Functions, and their bodies beside them (which do not leave this crate): $1 their OIDs.
SELECT json_build_object(
    'function', json_build_object(
        'name', json_build_array(n.nspname, p.proname),
        'arguments', pg_get_function_identity_arguments(p.oid),
        'kind', CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' WHEN 'w' THEN 'window' ELSE 'function' END,
        'owner', pg_get_userbyid(p.proowner),
        'signature', pg_get_function_arguments(p.oid),
        'result', pg_get_function_result(p.oid),
        'language', l.lanname,
        'volatility', CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END,
        'strict', p.proisstrict,
        'security_definer', p.prosecdef,
        'leakproof', p.proleakproof,
        'parallel', CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END,
        'config', (SELECT coalesce(json_agg(o ORDER BY o), '[]') FROM unnest(p.proconfig) AS o),
        'cost', p.procost,
        'rows', p.prorows,
        'body_sha256', encode(sha256(convert_to(body.text, 'UTF8')), 'hex'),
        'mentions', '[]'::json
    ),
    'body', body.text
)::text
FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
LEFT JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = p.oid
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN p.prosqlbody IS NOT NULL THEN pg_get_function_sqlbody(p.oid)
        WHEN a.aggfnoid IS NOT NULL THEN concat_ws(
            ' ', a.aggkind, a.aggtransfn::regprocedure, a.aggfinalfn::regproc, a.aggcombinefn::regproc, a.aggserialfn::regproc,
            a.aggdeserialfn::regproc, a.aggmtransfn::regproc, a.aggminvtransfn::regproc, a.aggmfinalfn::regproc,
            a.aggfinalextra, a.aggfinalmodify, a.aggsortop::regoperator, a.aggtranstype::regtype, a.aggmtranstype::regtype,
            a.agginitval, a.aggminitval)
        ELSE concat_ws(' ', encode(convert_to(p.probin, 'UTF8'), 'escape'), p.prosrc)
    END AS text
) AS body
WHERE p.oid = ANY ($1::oid[])
