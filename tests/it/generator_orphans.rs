//! Blobs that nothing refers to go, and no others.

use crate::support::{TestDatabase, on_both_databases, s3::S3Server};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    domain::time::Timestamp,
    generator::{documents::DocumentStore, orphans::Orphans},
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HOUR: Duration = Duration::from_hours(1);

/// Stands still at this moment: the age of files is the machine's.
fn clock() -> Clock {
    Clock::manual(Timestamp::default() + SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970"))
}

async fn put(store: &DocumentStore, content: &'static str) -> String {
    store.put(content.into()).await.expect("stored").blob
}

async fn is_there(store: &DocumentStore, blob: &str) -> bool {
    store.read(blob).await.expect("readable").is_some()
}

async fn the_referred_to_stay(database: &TestDatabase, store: DocumentStore) {
    let clock = clock();
    let db = database.open(clock.clone(), Entropy::seeded(1)).await;
    let orphans = Orphans::new(db.clone(), store.clone(), clock.clone(), Entropy::seeded(2));
    assert_eq!(orphans.tick().await.unwrap(), 0, "the empty store is given its id");
    let (orphan, step, document) = (put(&store, "orphan").await, put(&store, "step").await, put(&store, "document").await);
    let id =
        if database.url.starts_with("sqlite") { "x'00000000000000000000000000000007'" } else { "'00000000-0000-0000-0000-000000000007'" };
    database.execute(&format!(
            "INSERT INTO step_cache (key, output, created_us, used_us) VALUES ('k', '{{\"blob\":\"{step}\"}}', 1, 1); \
             INSERT INTO protocol (id, task_id, agenda_id, version, number, fingerprint, record, created_us) VALUES ({id}, {id}, 'a', 1, '1', 'f', '{{}}', 1); \
             INSERT INTO document (protocol_id, format, blob, sha256, bytes) VALUES ({id}, 'pdf', '{document}', 's', 1)"
        ))
        .await;
    clock.advance(23 * HOUR);
    assert_eq!(orphans.tick().await.unwrap(), 0, "too young");
    clock.advance(2 * HOUR);
    assert_eq!(orphans.tick().await.unwrap(), 0, "seen once");
    clock.advance(HOUR / 2);
    assert_eq!(orphans.tick().await.unwrap(), 0, "and again too soon");
    clock.advance(HOUR);
    assert_eq!(orphans.tick().await.unwrap(), 1);
    assert!(!is_there(&store, &orphan).await && is_there(&store, &step).await && is_there(&store, &document).await);
    database.execute("DELETE FROM step_cache").await;
    orphans.tick().await.unwrap();
    // Somebody refers to it again just in time.
    database.execute(&format!("INSERT INTO step_cache (key, output, created_us, used_us) VALUES ('k', '{step}', 1, 1)")).await;
    clock.advance(2 * HOUR);
    assert_eq!(orphans.tick().await.unwrap(), 0);
    assert!(is_there(&store, &step).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_in_a_bucket_go_like_those_in_a_folder() {
    let (database, server) = (TestDatabase::sqlite().await, S3Server::start());
    let store = DocumentStore::open(&server.documents("council"), database.data_dir.path()).unwrap();
    the_referred_to_stay(&database, store).await;
}

on_both_databases! {
    async fn what_nothing_refers_to_goes_when_it_is_a_day_old_and_was_seen_twice(database: TestDatabase) {
        let store = DocumentStore::in_folder(&database.data_dir.path().join("documents")).unwrap();
        the_referred_to_stay(&database, store).await;
    }

    async fn a_store_of_another_database_is_left_alone(database: TestDatabase) {
        let clock = clock();
        let store = DocumentStore::in_folder(&database.data_dir.path().join("documents")).unwrap();
        let its = database.another().await;
        let its_db = its.open(clock.clone(), Entropy::seeded(1)).await;
        let its_orphans = Orphans::new(its_db, store.clone(), clock.clone(), Entropy::seeded(2));
        its_orphans.tick().await.unwrap();
        let blob = put(&store, "its").await;
        let db = database.open(clock.clone(), Entropy::seeded(3)).await;
        let orphans = Orphans::new(db, store.clone(), clock.clone(), Entropy::seeded(4));
        for _ in 0..3 {
            clock.advance(48 * HOUR);
            assert_eq!(orphans.tick().await.unwrap(), 0);
        }
        assert!(is_there(&store, &blob).await);
        // Nor is a store that was in use before either of them knew an id.
        let old = DocumentStore::in_folder(&database.data_dir.path().join("old")).unwrap();
        let blob = put(&old, "old").await;
        let stranger = database.another().await;
        let orphans = Orphans::new(stranger.open(clock.clone(), Entropy::seeded(5)).await, old.clone(), clock.clone(), Entropy::seeded(6));
        for _ in 0..3 {
            clock.advance(48 * HOUR);
            assert_eq!(orphans.tick().await.unwrap(), 0);
        }
        assert!(is_there(&old, &blob).await);
    }
}
