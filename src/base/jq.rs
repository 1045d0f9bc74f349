//! jq programs from the configuration: compiled once, run on one JSON text each time, within bounds.
//!
//! The interpreter cannot be interrupted, so each run has a thread of its own, away from the async threads; a run that does not end keeps one of [`PLACES`]
//! and its thread until the process ends, and when all are kept, later runs fail after [`PATIENCE`]. The program is the operator's own: the bounds are against
//! mistakes, not against malice (see docs/adr).

use super::clock::Clock;
use jaq_core::{
    Compiler, Ctx, Filter, Vars,
    data::JustLut,
    load::{Arena, File, Loader, lex, parse},
    unwrap_valr,
};
use jaq_json::{Val, read, write};
use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::sync::{Semaphore, oneshot};

/// How long a run may take, waiting for its place included.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// The largest output.
pub const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// How many runs there may be at once.
const PLACES: usize = 4;
/// Reserved, not used: the interpreter recurses as deep as its program.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// A compiled program; cheap to clone.
#[derive(Clone)]
pub struct Program {
    filter: Arc<Filter<JustLut<Val>>>,
    places: Arc<Semaphore>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

/// Where a text is no program, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct SyntaxError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub reason: String,
}

/// Why a run gave nothing that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error("its input is no JSON: {0}")]
    Input(String),
    #[error("{0}")]
    Failed(String),
    #[error("it gives no value; it has to give one")]
    Nothing,
    #[error("it gives more than one value; put them into one array or object")]
    Several,
    #[error("it gives what is no JSON, such as a number that is none")]
    NotJson,
    #[error("it gives more than {MAX_OUTPUT_BYTES} bytes")]
    TooLarge,
    #[error("it took over {} s", PATIENCE.as_secs())]
    TooSlow,
    #[error("the interpreter broke down")]
    Broken,
}

impl Program {
    /// # Errors
    /// When the text is no program.
    pub fn compile(text: &str) -> Result<Self, SyntaxError> {
        let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let modules = Loader::new(definitions).load(&arena, File { code: text, path: () }).map_err(|errors| {
            let first = errors.into_iter().next().map(|(_, error)| error);
            first.map_or_else(|| at(text, text, "cannot be read"), |error| of_load(text, &error))
        })?;
        let filter = Compiler::default().with_funs(functions).compile(modules).map_err(|errors| {
            let first = errors.into_iter().flat_map(|(_, undefined)| undefined).next();
            first.map_or_else(
                || at(text, text, "cannot be compiled"),
                |(name, kind)| at(text, name, &format!("there is no {} {name}", kind.as_str())),
            )
        })?;
        Ok(Self { filter: Arc::new(filter), places: Arc::new(Semaphore::new(PLACES)) })
    }

    /// Runs the program on a JSON text; the answer is one JSON text.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run(&self, clock: &Clock, input: Vec<u8>) -> Result<Vec<u8>, RunError> {
        let run = async {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return Err(RunError::Broken) };
            let (done, outcome) = oneshot::channel();
            let filter = Arc::clone(&self.filter);
            let work = move || {
                let outcome = catch_unwind(AssertUnwindSafe(|| evaluate(&filter, &input))).unwrap_or(Err(RunError::Broken));
                // Nobody waits any more for one that took too long.
                let _ = done.send(outcome);
                drop(place);
            };
            let spawned = thread::Builder::new().name("jq".to_owned()).stack_size(STACK_BYTES).spawn(work);
            if spawned.is_err() {
                return Err(RunError::Broken);
            }
            outcome.await.unwrap_or(Err(RunError::Broken))
        };
        tokio::select! {
            outcome = run => outcome,
            () = clock.sleep(PATIENCE) => Err(RunError::TooSlow),
        }
    }
}

fn evaluate(filter: &Filter<JustLut<Val>>, input: &[u8]) -> Result<Vec<u8>, RunError> {
    let input = read::parse_single(input).map_err(|error| RunError::Input(error.to_string()))?;
    let context = Ctx::<JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut values = filter.id.run((context, input)).map(unwrap_valr);
    let value = values.next().ok_or(RunError::Nothing)?.map_err(|error| RunError::Failed(error.to_string()))?;
    if values.next().is_some() {
        return Err(RunError::Several);
    }
    let mut output = Bounded(Vec::new());
    write::write(&mut output, &write::Pp::default(), 0, &value).map_err(|_| RunError::TooLarge)?;
    // The interpreter's values are more than JSON: keys of any kind, byte strings, NaN.
    serde_json::from_slice::<serde::de::IgnoredAny>(&output.0).map_err(|_| RunError::NotJson)?;
    Ok(output.0)
}

/// A buffer that refuses what is over the limit.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn of_load(text: &str, error: &jaq_core::load::Error<&str>) -> SyntaxError {
    use jaq_core::load::Error;
    let expected = |what: &str, found: &str| match found.chars().next() {
        Some(_) => format!("expected {what}, found {:?}", found.chars().take(20).collect::<String>()),
        None => format!("expected {what}, found the end"),
    };
    match error {
        Error::Io(errors) => errors.first().map_or_else(|| at(text, text, "cannot be read"), |(place, reason)| at(text, place, reason)),
        Error::Lex(errors) => match errors.first() {
            Some((wanted, place)) => at(text, place, &expected(lex::Expect::as_str(wanted), place)),
            None => at(text, text, "cannot be read"),
        },
        Error::Parse(errors) => match errors.first() {
            Some((wanted, place)) => at(text, place, &expected(parse::Expect::as_str(wanted), place)),
            None => at(text, text, "cannot be read"),
        },
    }
}

/// The place of `part`, a slice of `text`, as people count it.
fn at(text: &str, part: &str, reason: &str) -> SyntaxError {
    let offset = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize).filter(|offset| *offset <= text.len()).unwrap_or(0);
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    SyntaxError { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    fn wrong(text: &str) -> (usize, usize) {
        let error = Program::compile(text).expect_err(text);
        (error.line, error.column)
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(wrong("{a: .a,\n b: }"), (2, 5));
        assert_eq!(wrong(".a | nonsense"), (1, 6));
        assert_eq!(wrong("{\"я\": $x}"), (1, 7));
        assert_eq!(wrong("(.a"), (1, 4));
        assert_eq!(wrong(""), (1, 1));
        assert!(Program::compile("import \"a\" as a; .").is_err(), "there is nowhere to import from");
    }

    async fn run(program: &str, input: &str) -> Result<String, RunError> {
        run_by(&Clock::system(), program, input).await
    }

    async fn run_by(clock: &Clock, program: &str, input: &str) -> Result<String, RunError> {
        let output = Program::compile(program).expect(program).run(clock, input.as_bytes().to_vec()).await?;
        Ok(String::from_utf8(output).expect("JSON is UTF-8"))
    }

    #[tokio::test]
    async fn one_value_comes_out_as_json() {
        assert_eq!(run("{b: .a, c: \"я\"}", r#"{"a":[1,2.5,null]}"#).await.as_deref(), Ok(r#"{"b":[1,2.5,null],"c":"я"}"#));
        assert_eq!(run("empty", "1").await, Err(RunError::Nothing));
        assert_eq!(run(".[]", "[1,2]").await, Err(RunError::Several));
        assert_eq!(run("nan", "1").await, Err(RunError::NotJson));
        // However slow the machine is.
        let endless = Clock::manual(Timestamp::default());
        assert_eq!(run_by(&endless, "[range(3000000)]", "1").await, Err(RunError::TooLarge));
        assert!(matches!(run(".a.b", r#"{"a":1}"#).await, Err(RunError::Failed(_))));
        assert!(matches!(run("halt", "1").await, Err(RunError::Failed(_))), "it does not end the process");
    }

    #[tokio::test]
    async fn what_does_not_end_is_given_up() {
        assert_eq!(run("def f: f; f", "1").await, Err(RunError::TooSlow));
    }
}
