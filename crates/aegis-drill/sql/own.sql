-- The handler's own row: one for each task, in the transaction of its checkpoint; a second one is a doubled effect.
INSERT INTO drill.own (task) VALUES ($1)
