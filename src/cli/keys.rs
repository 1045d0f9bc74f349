//! `keys new`: makes a caller's key, shows it once, and prints what to write into the configuration, which holds only its hash.

use super::{
    Exit,
    arguments::NewKey,
    output::{note, say},
};
use crate::{
    base::{config::check_name, entropy::Entropy},
    generator::documents::hex,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// Says what it is to whoever finds one, and to programs that look for leaked ones.
const PREFIX: &str = "pbk_";

pub(super) fn new(arguments: &NewKey) -> Exit {
    if let Err(reason) = check_name(&arguments.name) {
        note(&reason);
        return Exit::Usage;
    }
    let key = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(Entropy::system().secret()));
    let roles: Vec<String> = arguments.role.iter().map(|role| format!("\"{}\"", role.as_str())).collect();
    note("The key is shown only now; the caller sends it as \"Authorization: Bearer KEY\":");
    say(&format!("# key: {key}"));
    note("And this goes into the configuration:");
    say(&format!(
        "[[callers]]\nname = \"{}\"\nroles = [{}]\nkey_sha256 = \"{}\"",
        arguments.name,
        roles.join(", "),
        hex(&Sha256::digest(key.as_bytes()))
    ));
    Exit::Done
}
