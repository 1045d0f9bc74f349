//! Layers, and everything that is wrong with them, told at once.

use protocol_bridge::base::config::{Config, Error, Loaded, Sources, load};
use std::{fs, time::Duration};
use tempfile::TempDir;

/// A configuration file that is there as long as this is.
struct File(TempDir);

impl File {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("bridge.toml"), text).expect("written");
        Self(folder)
    }

    fn sources(&self) -> Sources {
        Sources { file: Some(self.0.path().join("bridge.toml")), ..Sources::default() }
    }
}

fn environment(variables: &[(&str, &str)]) -> Sources {
    let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sources { environment, ..Sources::default() }
}

/// What is refused, with the file's folder left out.
fn refused(sources: &Sources) -> Vec<String> {
    match load(sources) {
        Err(Error::Invalid(problems)) => problems
            .iter()
            .map(|problem| match &sources.file {
                Some(path) => problem.to_string().replace(&path.display().to_string(), "bridge.toml"),
                None => problem.to_string(),
            })
            .collect(),
        Err(other) => vec![other.to_string()],
        Ok(_) => Vec::new(),
    }
}

#[test]
fn the_environment_overrides_the_file_and_flags_override_both() {
    let file = File::new("data_dir = '/from/file'\n[http]\nlisten = '127.0.0.1:1'\n[engine]\nmax_running = 1\nlease = '1m'\n");
    let mut sources = file.sources();
    let Loaded { config, .. } = load(&sources).expect("valid");
    assert_eq!((config.engine.max_running, config.http.listen.port()), (1, 1));

    sources.environment = environment(&[
        ("PROTOCOL_BRIDGE__ENGINE__MAX_RUNNING", "2"),
        ("PROTOCOL_BRIDGE__HTTP__LISTEN", "127.0.0.1:2"),
        ("PROTOCOL_BRIDGE__AGENDA__TOKEN", "007"),
        ("PROTOCOL_BRIDGE__GENERATOR__FORMATS", "[\"json\"]"),
        ("PROTOCOL_BRIDGE__ENGINE__DEMO", "true"),
        ("PROTOCOL_BRIDGE__CALLERS", "[{name=\"agenda\",roles=[\"legacy\"],retired=true}]"),
        ("PROTOCOL_BRIDGE_SERVICE_HOST", "10.0.0.1"),
        ("PATH", "/bin"),
    ])
    .environment;
    sources.flags = vec![(vec!["http", "listen"], "127.0.0.1:3".to_owned()), (vec!["data_dir"], "/from/flag".to_owned())];
    let Loaded { config, .. } = load(&sources).expect("valid");
    assert_eq!((config.engine.max_running, config.http.listen.port()), (2, 3));
    assert_eq!(config.agenda.token.expose(), "007", "a text stays as it was written");
    assert_eq!(config.generator.formats.len(), 1);
    assert_eq!(config.callers[0].name, "agenda");
    assert_eq!(config.engine.lease, Duration::from_mins(1));
    assert_eq!(config.data_dir.to_str(), Some("/from/flag"));
    assert_eq!(config.database_url(), "sqlite:/from/flag/protocol-bridge.db");
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    let file = File::new(
        "[engine]\nmax_runing = 3\n[enginne]\nlease = '30s'\n[http]\nxyzzy_plugh = 1\n[[callers]]\nname = 'a'\nrole = ['read']\n",
    );
    let mut sources = file.sources();
    sources.environment = environment(&[("PROTOCOL_BRIDGE__LEGACY__TIME_OUT", "1s"), ("PROTOCOL_BRIDGE__A__B__C", "1")]).environment;
    let problems = refused(&sources);
    for expected in [
        "engine.max_runing (from bridge.toml): unknown key engine.max_runing; did you mean engine.max_running?",
        "enginne.lease (from bridge.toml): unknown key enginne.lease; did you mean engine.lease?",
        "http.xyzzy_plugh (from bridge.toml): unknown key http.xyzzy_plugh; config.default.toml lists all keys",
        "callers.role (from bridge.toml): unknown key callers.role; did you mean callers.roles?",
        "legacy.time_out (from the environment): unknown key legacy.time_out; did you mean legacy.timeout?",
        "a.b.c (from the environment): unknown key a.b.c; config.default.toml lists all keys",
    ] {
        assert!(problems.iter().any(|problem| problem == expected), "{expected}\nis not in\n{}", problems.join("\n"));
    }
}

#[test]
fn all_problems_are_told_at_once_with_their_origin() {
    let file = File::new(
        "[engine]\nlease = 30\nheartbeat = 'soon'\nmax_attempts = 0\ntransport = 'pigeon'\n\
         [http]\nlisten = 'nowhere'\nbody_limit = 'huge'\npublic_url = 'ftp://x'\ntrusted_proxies = ['10.0.0.0/33']\n\
         [legacy]\nsunset = '2027-09-30'\nquiet_period = '0s'\nproxy_timeout = '0s'\nresponse = '{a: .b'\n\
         brownouts = [{ from = 2027-03-01T10:00:00Z, to = 2027-03-01T09:00:00Z }]\n[agenda]\nsource = 'https://agenda.example.org/42'\ntimezone = 'Mars/Olympus'\n\
         [telemetry]\nformat = 'xml'\notlp_endpoint = 'http://user:hunter2@otel:4318'\n",
    );
    let mut sources = file.sources();
    sources.environment = environment(&[("PROTOCOL_BRIDGE__AGENDA__MAX_PER_HOST", "many")]).environment;
    insta::assert_snapshot!(refused(&sources).join("\n"));
}

#[test]
fn a_secret_may_come_from_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("url");
    fs::write(&path, "postgres://bridge:hunter2@db/bridge\n").expect("written");
    let path = path.to_str().expect("UTF-8");
    let sources = environment(&[("PROTOCOL_BRIDGE__DATABASE__URL_FILE", path)]);
    let Loaded { config, .. } = load(&sources).expect("valid");
    assert_eq!(config.database_url(), "postgres://bridge:hunter2@db/bridge");
    assert!(!format!("{config:?}").contains("hunter2"), "Debug does not show it");

    let file = File::new(&format!("[database]\nurl = 'sqlite:x'\nurl_file = '{path}'\n[agenda]\ntoken_file = '/no/such/file'\n"));
    insta::assert_snapshot!(refused(&file.sources()).join("\n").replace(path, "FILE"), @r#"
    database.url_file (from bridge.toml): database.url is given as well; keep one of the two
    agenda.token_file (from bridge.toml): the file "/no/such/file" cannot be read: No such file or directory (os error 2)
    "#);
}

#[test]
fn an_open_address_needs_callers_or_the_written_word() {
    for open in ["0.0.0.0:8080", "[::]:8080", "192.168.1.5:80"] {
        let mut sources = environment(&[("PROTOCOL_BRIDGE__HTTP__LISTEN", open)]);
        assert_eq!(
            refused(&sources),
            [format!(
                "http.listen (from the environment): {open} can be reached from other machines, and without callers anyone there could do everything; \
                 configure [[callers]], or listen on 127.0.0.1, or write auth.disabled = true if that is what you want"
            )]
        );
        sources.environment.push(("PROTOCOL_BRIDGE__AUTH__DISABLED".to_owned(), "true".to_owned()));
        let Loaded { warnings, .. } = load(&sources).expect("it was written out");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
    for closed in ["127.0.0.1:0", "[::1]:8080", "[::ffff:127.0.0.1]:80"] {
        load(&environment(&[("PROTOCOL_BRIDGE__HTTP__LISTEN", closed)])).expect("loopback");
    }
}

#[test]
fn dangerous_pairs_are_warned_about() {
    let file = File::new(
        "[legacy]\ntimeout = '1s'\nproxy_timeout = '1s'\n[engine]\nlease = '30s'\nheartbeat = '15s'\n\
         [agenda]\nsource = 'http://agenda/{agendaId}'\ntoken = 'x'\n[http]\nlisten = '0.0.0.0:80'\n[auth]\ndisabled = true\n",
    );
    let Loaded { warnings, .. } = load(&file.sources()).expect("allowed");
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"));
}

#[test]
fn callers_must_be_provable_and_distinct() {
    let file = File::new(
        "[[callers]]\nname = 'a b'\nroles = []\nkey_sha256 = 'ABC'\n[[callers]]\nname = 'x'\nroles = ['read']\nnetworks = ['10.0.0.0/8']\n\
         [[callers]]\nname = 'x'\nroles = ['read']\n[[callers]]\nname = 'other'\nroles = ['read']\nretired = true\n",
    );
    insta::assert_snapshot!(refused(&file.sources()).join("\n"));
    let wrong_role = File::new("[[callers]]\nname = 'x'\nroles = ['king']\nretired = true\n");
    assert!(refused(&wrong_role.sources())[0].contains("king"), "{:?}", refused(&wrong_role.sources()));
}

#[test]
fn a_file_that_is_not_there_or_not_toml_is_named() {
    let missing = Sources { file: Some("/no/such/bridge.toml".into()), ..Sources::default() };
    assert_eq!(refused(&missing), ["the configuration file /no/such/bridge.toml cannot be read"]);
    let broken = File::new("[http\n");
    let problem = &refused(&broken.sources())[0];
    assert!(problem.contains("is not TOML") && problem.contains("line 1"), "{problem}");
}

#[test]
fn the_defaults_alone_are_valid_and_harmless() {
    let Loaded { config, warnings } = load(&Sources::default()).expect("valid");
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(config.http.is_loopback() && !config.auth.disabled);
    assert_eq!(Config::default().legacy.timeout, Duration::from_mins(12));
}

#[test]
fn times_may_be_written_without_quotes() {
    let file = File::new("[legacy]\nsunset = 2027-09-30T23:59:59Z\n");
    let Loaded { config, .. } = load(&file.sources()).expect("valid");
    assert_eq!(config.legacy.sunset.map(|sunset| sunset.to_string()).as_deref(), Some("2027-09-30T23:59:59Z"));
}

#[test]
fn nats_goes_with_postgres_only_and_its_address_is_a_secret() {
    let nats = ("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", "nats://bridge:s3cret@nats.example.org:4222,tls://two.example.org");
    let postgres = ("PROTOCOL_BRIDGE__DATABASE__URL", "postgres://bridge@db.example.org/bridge");
    let Loaded { config, .. } = load(&environment(&[nats, postgres])).expect("valid");
    assert!(config.engine.uses_nats());
    assert!(!format!("{config:?}").contains("s3cret"));
    let refused_alone = refused(&environment(&[nats]));
    assert_eq!(refused_alone.len(), 1, "{refused_alone:?}");
    assert!(refused_alone[0].starts_with("engine.transport") && refused_alone[0].contains("SQLite"), "{refused_alone:?}");
    let wrong =
        [("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", "nats://a:s3cret@one:port"), ("PROTOCOL_BRIDGE__ENGINE__NATS_PREFIX", "a.b"), postgres];
    let refused_wrong = refused(&environment(&wrong)).join("\n");
    assert!(refused_wrong.contains("engine.transport") && refused_wrong.contains("engine.nats_prefix"), "{refused_wrong}");
    assert!(!refused_wrong.contains("s3cret"), "{refused_wrong}");
}
