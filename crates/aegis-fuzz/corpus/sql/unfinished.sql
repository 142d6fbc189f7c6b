CREATE TABLE a (b int, -- comment
 /* another /* inner */ c text DEFAULT 'x''y' || E'\n' || U&'\0041'