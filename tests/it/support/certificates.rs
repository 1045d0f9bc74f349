//! Certificates of an authority of the test's own, made by openssl, for servers on 127.0.0.1.

use std::{path::PathBuf, process::Command};
use tempfile::TempDir;

/// An authority and one server's certificate by it; gone with the test.
#[derive(Debug)]
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    pub fn make() -> Self {
        let certificates = Self { folder: TempDir::new().expect("a folder") };
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let authority = ["req", "-x509", "-subj", "/CN=An authority of a test", "-keyout", "ca.key", "-out", "ca.crt"];
        certificates.openssl(&[&authority[..], &key].concat());
        let server =
            ["req", "-x509", "-subj", "/CN=127.0.0.1", "-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.crt"];
        let names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
        certificates.openssl(&[&server[..], &names, &key].concat());
        certificates
    }

    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.crt")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }

    fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl").args(arguments).current_dir(self.folder.path()).output();
        let output = output.expect("openssl is installed (scripts/test.sh --install)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
