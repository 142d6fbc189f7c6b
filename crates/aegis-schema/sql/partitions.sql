-- Partitions for so many days ahead. $1 days.
SELECT aegis.make_partitions($1)
