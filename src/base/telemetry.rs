//! Logs: text on a terminal, one JSON object a line elsewhere; always on stderr, because stdout belongs to what was asked for.
//!
//! In JSON the message, the event's fields and those of the spans around it (`taskId`, `agendaId`, `traceId`, …) are all top-level, so that `grep` and the
//! simplest log store find them; the event's own win over its spans', inner spans' over outer ones'.

use super::{
    chain::chain,
    config::{LogFormat, Telemetry},
};
use serde_json::{Map, Value};
use std::{
    fmt,
    io::{self, IsTerminal as _},
};
use tracing::{Event, Subscriber, field::Field};
use tracing_subscriber::{
    EnvFilter,
    fmt::{
        FmtContext, FormatEvent, FormattedFields, MakeWriter,
        format::{JsonFields, Writer},
        time::{FormatTime as _, SystemTime},
    },
    registry::LookupSpan,
};

/// The NATS client tells every try to connect, every session of a PostgreSQL server that stops says so, and so does everyone who waited long for a connection; what
/// matters of it we say ourselves. A configured
/// filter that names them overrides this.
const QUIET: &str = "async_nats=warn,sqlx::postgres::notice=error,sqlx_core::pool=error,sqlx::pool=error";

/// Installs the process's subscriber; a second call changes nothing.
pub fn install(config: &Telemetry) {
    let filter: EnvFilter = format!("{QUIET},{}", config.log).parse().unwrap_or_else(|_| EnvFilter::new("info"));
    let json = match config.format {
        LogFormat::Auto => !io::stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    // A closed stderr must not take the service down or fill itself with complaints.
    let base = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter).log_internal_errors(false);
    let installed = if json {
        tracing::subscriber::set_global_default(base.fmt_fields(JsonFields::new()).event_format(JsonLine).finish())
    } else {
        tracing::subscriber::set_global_default(base.with_ansi(io::stderr().is_terminal()).finish())
    };
    // An error means that there is one already, as in a test that starts the service twice in one process.
    let _ = installed;
}

/// What [`install`] installs for JSON, with a writer of the caller's own and nothing filtered.
pub fn json_lines<W: for<'w> MakeWriter<'w> + Send + Sync + 'static>(writer: W) -> impl Subscriber + Send + Sync + 'static {
    tracing_subscriber::fmt().with_writer(writer).fmt_fields(JsonFields::new()).event_format(JsonLine).finish()
}

/// One event, one line, one flat object.
struct JsonLine;

impl<S> FormatEvent<S, JsonFields> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(&self, context: &FmtContext<'_, S, JsonFields>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        line.insert("target".to_owned(), event.metadata().target().into());
        for span in context.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            line.insert("span".to_owned(), span.name().into());
            if let Some(fields) = span.extensions().get::<FormattedFields<JsonFields>>()
                && let Ok(fields) = serde_json::from_str::<Map<String, Value>>(&fields.fields)
            {
                line.extend(fields);
            }
        }
        event.record(&mut Fields(&mut line));
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Takes an event's fields over into the object.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl tracing::field::Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    /// The whole chain, so that the log names the cause and not only its outermost words.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, chain(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Sink {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_json_line_is_flat_and_holds_the_spans_fields() {
        let sink = Sink::default();
        tracing::subscriber::with_default(json_lines(sink.clone()), || {
            let _outer = tracing::info_span!("request", requestId = "r-1", taskId = "outer").entered();
            let _inner = tracing::info_span!("task", taskId = %"t-1").entered();
            tracing::warn!(agendaId = "42", attempt = 2, "Sync v1 called by {}, migrate to task-based", "agenda \"x\"\n");
        });
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        for (key, value) in [
            ("level", Value::from("WARN")),
            ("message", "Sync v1 called by agenda \"x\"\n, migrate to task-based".into()),
            ("requestId", "r-1".into()),
            ("taskId", "t-1".into()),
            ("agendaId", "42".into()),
            ("attempt", 2.into()),
            ("span", "task".into()),
        ] {
            assert_eq!(line[key], value, "{key} in {text}");
        }
        assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{text}");
    }
}
