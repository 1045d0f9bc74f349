//! Where blobs lie: what the configuration names, opened.

use super::StoreError;
use crate::base::{config, tls};
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    prefix::PrefixStore,
};
use std::{path::Path, sync::Arc, time::Duration};

/// A store that was opened, and how people call it.
pub(super) struct Place {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) name: String,
}

/// A connection, and a silence in the middle of an answer.
const CONNECT: Duration = Duration::from_secs(3);
const SILENCE: Duration = Duration::from_secs(30);
/// Who waits for a document is answered within this; an attempt asks again by itself.
const PATIENCE: Duration = Duration::from_secs(4);

impl Place {
    /// A folder, which is made if it is not there.
    pub(super) fn folder(folder: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(folder)?;
        let objects = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(Self { objects: Arc::new(objects), name: folder.display().to_string() })
    }

    /// A bucket, or what lies in it under a prefix. Every request carries the SHA-256 of its body under its signature, so the store refuses what was altered on
    /// the way. What is not configured is taken from `AWS_*` variables, credentials of containers and machines included.
    pub(super) fn bucket(config: &config::Documents, bucket: &str, prefix: &str) -> Result<Self, StoreError> {
        tls::install();
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let settings = [
            (AmazonS3ConfigKey::S3Endpoint, config.s3_endpoint.as_str()),
            (AmazonS3ConfigKey::Region, &config.s3_region),
            (AmazonS3ConfigKey::AccessKeyId, &config.s3_access_key_id),
            (AmazonS3ConfigKey::SecretAccessKey, config.s3_secret_access_key.expose()),
        ];
        for (key, value) in settings.into_iter().filter(|(_, value)| !value.is_empty()) {
            builder = builder.with_config(key, value);
        }
        // A request may last as long as its body moves: a part over a slow line is no failure, silence is.
        let client = ClientOptions::new().with_timeout_disabled().with_connect_timeout(CONNECT).with_read_timeout(SILENCE);
        let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(1), base: 2.0 };
        let retry = RetryConfig { backoff, max_retries: 3, retry_timeout: PATIENCE };
        let objects = builder.with_client_options(client.with_allow_http(config.s3_allow_http)).with_retry(retry).build()?;
        let name = format!("s3://{bucket}{}{prefix}", if prefix.is_empty() { "" } else { "/" });
        let objects: Arc<dyn ObjectStore> = if prefix.is_empty() { Arc::new(objects) } else { Arc::new(PrefixStore::new(objects, prefix)) };
        Ok(Self { objects, name })
    }
}
