//! The service's own key (`auth.secret_key`): seals what is stored secretly, and is what other secrets are made from.
//!
//! A sealed text is bound to its purpose and to the row it belongs to, so that one cannot be put in another's place. Whoever has only the database reads none
//! of them. Another key opens none of them either: what was sealed has to be made anew then.

use super::entropy::Entropy;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey},
    hmac,
};
use sha2::{Digest as _, Sha256};
use std::{
    fmt, fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

const NONCE_BYTES: usize = 12;
const FILE: &str = "secret-key";

/// The key; cheap to clone. `Debug` shows nothing of it.
#[derive(Clone)]
pub struct SecretKey(hmac::Key);

/// A text that was sealed by another key, for something else, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be opened: auth.secret_key is not the one it was sealed with")]
pub struct Unopenable;

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(***)")
    }
}

impl SecretKey {
    /// From a text of any length; what is worth guessing should hold 32 random bytes.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &Sha256::digest(text.as_bytes())))
    }

    /// The one kept in `folder`, made at the first time, for its owner's eyes only.
    ///
    /// # Errors
    /// When it cannot be read or made.
    pub fn kept_in(folder: &Path, entropy: &Entropy) -> io::Result<Self> {
        let path = folder.join(FILE);
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(Self::new(text.trim())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let text = BASE64_STANDARD.encode(entropy.secret());
        // Whole or not at all: a half-written key would seal what nobody can open later.
        let beside = folder.join(format!("{FILE}.new"));
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        fs::File::open(folder)?.sync_all()?;
        Ok(Self::new(&text))
    }

    /// 32 bytes that belong to this purpose alone.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hmac::sign(&self.0, purpose.as_bytes()).as_ref());
        bytes
    }

    /// Seals bytes for `place`, such as a table and a row's id.
    ///
    /// # Panics
    /// Never: the key has the length that the algorithm takes, and the text is short.
    #[must_use]
    pub fn seal(&self, place: &str, plain: &[u8], entropy: &Entropy) -> String {
        let random = entropy.secret();
        let (nonce, _) = random.split_at(NONCE_BYTES);
        let mut sealed = plain.to_vec();
        let unique = Nonce::try_assume_unique_for_key(nonce).expect("twelve bytes");
        self.sealing(place).seal_in_place_append_tag(unique, Aad::from(place.as_bytes()), &mut sealed).expect("a short text");
        BASE64_STANDARD.encode([nonce, &sealed].concat())
    }

    /// Opens what was sealed for `place`.
    ///
    /// # Errors
    /// When it was not sealed by this key for this place.
    pub fn open(&self, place: &str, sealed: &str) -> Result<Vec<u8>, Unopenable> {
        let bytes = BASE64_STANDARD.decode(sealed).map_err(|_| Unopenable)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES).ok_or(Unopenable)?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopenable)?;
        let plain = self.sealing(place).open_in_place(nonce, Aad::from(place.as_bytes()), &mut sealed).map_err(|_| Unopenable)?;
        Ok(plain.to_vec())
    }

    /// A key for each place: how many are sealed in one never matters then.
    fn sealing(&self, place: &str) -> LessSafeKey {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.derive(&format!("seal {place}"))).expect("32 bytes");
        LessSafeKey::new(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_sealed_opens_in_its_place_with_its_key_only() {
        let (key, entropy) = (SecretKey::new("one"), Entropy::seeded(1));
        let sealed = key.seal("subscription 1", b"s3cret", &entropy);
        assert!(!sealed.contains("s3cret"));
        assert_eq!(key.open("subscription 1", &sealed).unwrap(), b"s3cret");
        assert_ne!(sealed, key.seal("subscription 1", b"s3cret", &entropy), "never the same twice");
        assert_eq!(key.open("subscription 2", &sealed), Err(Unopenable));
        assert_eq!(SecretKey::new("two").open("subscription 1", &sealed), Err(Unopenable));
        for broken in ["", "?", "AAAA", &sealed[4..]] {
            assert_eq!(key.open("subscription 1", broken), Err(Unopenable), "{broken}");
        }
        assert!(!format!("{key:?}").contains("one"));
    }

    #[test]
    fn the_kept_one_is_made_once_and_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let key = SecretKey::kept_in(folder.path(), &Entropy::seeded(1)).unwrap();
        let again = SecretKey::kept_in(folder.path(), &Entropy::seeded(2)).unwrap();
        assert_eq!(key.derive("x"), again.derive("x"));
        let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
