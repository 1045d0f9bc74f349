//! The process's one TLS provider: ring, so that nothing builds OpenSSL or aws-lc.

/// Makes ring the provider of every rustls client in this process; a second call changes nothing.
pub fn install() {
    // An error means that it is there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
