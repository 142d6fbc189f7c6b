# count: claims_after_drain
# file: crates/aegis-store/src/generated/task.rs
# Acquire does not look whether the gate is open: a claim that was on its way when a drain began gets its tasks.
s/WHERE id = \$1::uuid AND state = 0 AND last_request/WHERE id = $1::uuid AND state <= 1 AND last_request/
