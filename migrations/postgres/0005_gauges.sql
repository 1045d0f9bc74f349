-- What the metrics look at every few seconds: the v1 calls of a day, and open dead letters by reason. Without these each look would walk through a whole table.
CREATE INDEX legacy_call_day         ON legacy_call (day DESC, caller, outcome);
-- The two columns are always NULL here; SQLite looks at them all the same, and would read each row for them.
CREATE INDEX dead_letter_open_reason ON dead_letter (reason, replayed_us, dismissed_us) WHERE replayed_us IS NULL AND dismissed_us IS NULL;
