-- What other vendors of tracing put beside the traceparent of a submission; handed on with it.
ALTER TABLE task ADD COLUMN tracestate TEXT;
