-- One durable commit that changes one row.
\set id random(1, 1000)
UPDATE l1 SET v = v + 1 WHERE id = :id;
