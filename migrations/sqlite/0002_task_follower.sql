-- Which callers beside its own a task belongs to: those whose v1 call joined it.
CREATE TABLE task_follower (
    task_id BLOB NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    caller  TEXT NOT NULL,
    PRIMARY KEY (task_id, caller)
) WITHOUT ROWID;
