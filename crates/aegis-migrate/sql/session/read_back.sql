-- Whether the settings hold: rows of those that do not. $1 names, $2 values as the server prints them.
SELECT s.name, s.wanted, current_setting(s.name, true) AS found
FROM unnest($1::text[], $2::text[]) AS s (name, wanted) WHERE current_setting(s.name, true) IS DISTINCT FROM s.wanted
