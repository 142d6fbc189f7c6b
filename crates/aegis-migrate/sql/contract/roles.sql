-- Which of these roles exist. $1 roles.
SELECT r.rolname::text FROM pg_roles r WHERE r.rolname = ANY ($1::text[])
