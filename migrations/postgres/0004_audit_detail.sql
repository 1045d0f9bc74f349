-- How something was done by hand, where there is a choice: the phase from which a task was replayed.
ALTER TABLE audit ADD COLUMN detail TEXT;
CREATE INDEX audit_object ON audit (object, at_us, id);
