-- What the platform gives: runs on the private server of a replay and nowhere else.
CREATE ROLE split_name_rw;
