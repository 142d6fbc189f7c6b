-- Changes whose old side is closed or gone, as any program may ask.
SELECT c.change FROM aegis_migrate.closed() c
