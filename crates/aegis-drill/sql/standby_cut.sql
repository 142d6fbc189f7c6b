-- On a standby: whom it follows from the next reload on is nobody.
ALTER SYSTEM SET primary_conninfo TO ''
