//! What the generator's tests share: a node that generates over a test's own database and agenda source.

use crate::support::{TestDatabase, config, within};
use protocol_bridge::{
    base::{clock::Clock, config::Config, entropy::Entropy, shutdown::Shutdown},
    domain::{
        ids::{AgendaId, TaskId},
        protocol::{Format, Protocol},
        task::{Kind, Task},
    },
    engine::{Engine, Parts, Submission, TaskExecutor, Via, WaitFor, Waited, transport::Local},
    generator::{Generator, InProcessRenderer, documents::DocumentStore, renderer::Renderer},
    store::{Db, protocol},
};
use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

/// Longer than anything here takes, however busy the machine is.
pub const LIMIT: Duration = Duration::from_mins(1);

/// A node with a generator.
pub struct Node {
    pub generator: Generator,
    pub engine: Engine,
    pub db: Db,
    clock: Clock,
    shutdown: Shutdown,
}

/// How the next node is to be.
pub struct Setup {
    pub config: Config,
    pub renderer: Arc<dyn Renderer>,
}

impl Setup {
    /// Impatient, and makes JSON only: typesetting takes its time in debug builds.
    pub fn new(source: &str) -> Self {
        let mut config = config();
        source.clone_into(&mut config.agenda.source);
        config.agenda.ready_grace = Duration::ZERO;
        config.generator.formats = vec![Format::Json];
        config.engine.retry_base = Duration::from_millis(20);
        config.engine.lease = Duration::from_millis(1500);
        config.engine.heartbeat = Duration::from_millis(300);
        Self { config, renderer: Arc::new(InProcessRenderer::new(None)) }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    pub fn with_renderer(mut self, renderer: Arc<dyn Renderer>) -> Self {
        self.renderer = renderer;
        self
    }

    pub async fn start(mut self, database: &TestDatabase) -> Node {
        let (clock, entropy) = (Clock::system(), Entropy::system());
        let data_dir: &Path = database.data_dir.path();
        self.config.data_dir = data_dir.to_owned();
        let db = database.open(clock.clone(), entropy.clone()).await;
        let documents = DocumentStore::open(&self.config.documents, data_dir).expect("a folder for documents");
        let generator =
            Generator::new(&self.config, db.clone(), clock.clone(), entropy.clone(), documents, self.renderer).expect("a generator");
        let shutdown = Shutdown::new();
        let executors = HashMap::from([(Kind::Protocol, Arc::new(generator.clone()) as Arc<dyn TaskExecutor>)]);
        let parts = Parts {
            config: self.config.engine,
            poll_interval: Duration::from_millis(200),
            grace: Duration::from_secs(1),
            db: db.clone(),
            lease_store: None,
            transport: Arc::new(Local::new(64)),
            clock: clock.clone(),
            entropy,
            executors,
            disk: None,
            telling: crate::engine_world::telling(),
        };
        let engine = Engine::start(parts, &shutdown);
        Node { generator, engine, db, clock, shutdown }
    }
}

impl Node {
    pub async fn submit(&self, agenda: &str) -> TaskId {
        let submission = Submission {
            kind: Kind::Protocol,
            agenda_id: Some(id(agenda)),
            payload: format!("{{\"agendaId\":\"{agenda}\"}}"),
            client_reference: None,
            run_at: None,
            callback_url: None,
            idempotency: None,
            caller: "test".to_owned(),
            via: Via::V2,
            trace: None,
        };
        self.engine.submit(submission, None).await.expect("accepted").task.id
    }

    /// Waits for the task's end.
    pub async fn finished(&self, task: TaskId) -> Task {
        let deadline = self.clock.monotonic() + LIMIT;
        let waited = within(LIMIT + Duration::from_secs(5), "the task ends", self.engine.hub().wait(task, WaitFor::Finish, deadline));
        match waited.await.expect("the store answers") {
            Waited::Reached(task) => task,
            other => panic!("the task has not ended: {other:?}"),
        }
    }

    pub async fn generate(&self, agenda: &str) -> Task {
        let task = self.submit(agenda).await;
        self.finished(task).await
    }

    /// The agenda's protocols, newest first.
    pub async fn protocols(&self, agenda: &str) -> Vec<Protocol> {
        let id = id(agenda);
        let look = self.db.read("look", move |tx| {
            let id = id.clone();
            Box::pin(async move { protocol::of_agenda(tx, &id, None, 100).await })
        });
        look.await.expect("the store answers")
    }

    /// Leaves the node as it is, with whatever hangs in it: nothing of it goes on, and nothing is given back.
    pub fn abandon(self) {
        self.shutdown.force();
        self.engine.hub().drain();
    }

    /// Ends as a killed process does: nothing is given back.
    pub async fn kill(self) {
        self.shutdown.force();
        self.engine.hub().drain();
        within(LIMIT, "everything ends", self.shutdown.finished()).await;
        self.db.close().await;
    }
}

pub fn id(text: &str) -> AgendaId {
    text.parse().expect("an id")
}
