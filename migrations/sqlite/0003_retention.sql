-- What the janitor looks for, and what goes with a task that it deletes: without these each deletion would walk through a whole table.
CREATE INDEX event_created    ON event (created_us) WHERE position IS NOT NULL;
CREATE INDEX dead_letter_task ON dead_letter (task_id);
CREATE INDEX owed_answer_task ON owed_answer (task_id);
