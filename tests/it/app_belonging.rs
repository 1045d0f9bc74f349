//! A document store and a database that belong together serve; strangers are refused at start, with what to do.

use crate::support::{TestDatabase, on_both_databases, server};
use protocol_bridge::{
    app::{App, Ended, StartError, Stranger},
    base::config::Config,
};
use std::path::Path;

fn config(database: &TestDatabase, documents: &Path) -> Config {
    let mut config = server::config(database);
    config.documents.store = documents.display().to_string();
    config
}

async fn serves(database: &TestDatabase, documents: &Path) {
    let app = App::start(config(database, documents)).await.expect("it starts");
    assert_eq!(app.drain(false).await, Ended::Drained);
}

async fn refused(database: &TestDatabase, documents: &Path) -> (Stranger, String) {
    match App::start(config(database, documents)).await.expect_err("they are strangers") {
        StartError::Strangers(stranger) => (stranger.clone(), stranger.to_string()),
        other => panic!("{other:?}"),
    }
}

on_both_databases! {
    async fn strangers_are_refused(database: TestDatabase) {
        let (ours, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        serves(&database, ours.path()).await;
        serves(&database, ours.path()).await;
        let id = std::fs::read_to_string(ours.path().join("store-id")).unwrap().trim().to_owned();

        let (stranger, said) = refused(&database, others.path()).await;
        assert!(matches!(stranger, Stranger::NewStore { .. }) && said.contains(&id), "{said}");
        assert!(!others.path().join("store-id").exists(), "what was refused is left as it was");

        let another = database.another().await;
        // Until something lies in it, a store with an id is as good as new: whoever gave it one died before the database had it.
        serves(&another, ours.path()).await;
        let third = database.another().await;
        let document = ours.path().join("sha256/ab");
        std::fs::create_dir_all(&document).unwrap();
        std::fs::write(document.join("abcd"), "a document").unwrap();
        let (stranger, said) = refused(&third, ours.path()).await;
        assert!(matches!(stranger, Stranger::NewDatabase { .. }) && said.contains("database.url"), "{said}");

        serves(&third, others.path()).await;
        let (stranger, said) = refused(&third, ours.path()).await;
        assert!(matches!(stranger, Stranger::Different { .. }) && said.contains("documents.store"), "{said}");

        // A store from before there were ids serves a database of that time as it is.
        let fourth = database.another().await;
        std::fs::remove_file(ours.path().join("store-id")).unwrap();
        serves(&fourth, ours.path()).await;
        assert!(!ours.path().join("store-id").exists(), "nobody knows whether its documents are this database's");
    }
}

/// Replicas that start at the same moment on a new database: those that share a folder serve, one with a folder of its own does not.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_with_different_folders_do_not_both_serve() {
    let database = TestDatabase::postgres().await;
    let (shared, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = |folder: &Path| App::start(config(&database, folder));
    let (one, two, three) = tokio::join!(start(shared.path()), start(shared.path()), start(own.path()));
    assert_eq!(one.is_ok(), two.is_ok());
    assert_ne!(one.is_ok(), three.is_ok());
    for app in [one, two, three].into_iter().flatten() {
        app.drain(false).await;
    }
}
