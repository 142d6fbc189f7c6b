CREATE ROLE split_name_rw;
