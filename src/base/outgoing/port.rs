//! Ports that no HTTP server has.

/// Those that the Fetch standard blocks ("bad port"): behind them are mail, directory, chat and file services, which can be made to read a request as commands of
/// their own.
const BLOCKED: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117,
    119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636,
    989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Whether a request may go to this port.
#[must_use]
pub(super) fn is_usable(port: u16) -> bool {
    port != 0 && BLOCKED.binary_search(&port).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ports_are_usable_and_mail_is_not() {
        assert!(BLOCKED.is_sorted(), "they are searched by halves");
        assert!([80, 443, 8080, 8443, 3000].into_iter().all(is_usable));
        assert!(![0, 22, 25, 6667, 10080].into_iter().any(is_usable));
    }
}
