INSERT INTO drill.own (task) VALUES ($1)
