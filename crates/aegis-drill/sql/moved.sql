-- How many moves of tasks are there.
SELECT count(*) FROM drill.move
