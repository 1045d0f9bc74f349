# What the tests need, with the purpose of each; sourced by test.sh. Later tests add their own lines here.

# Debian package, a file or program that shows it is there, purpose.
DEBIAN_PACKAGES="
postgresql|/usr/lib/postgresql/*/bin/initdb|every test that touches the database runs on PostgreSQL too, on a cluster of its own
pgbouncer|/usr/sbin/pgbouncer|stands between the service and PostgreSQL and gives every transaction another session
nats-server|nats-server|carries messages between processes, with JetStream; is killed, purged and frozen
nginx|nginx|stands between caller and service, as proxies do, and gives up first
prometheus|promtool|scrapes the service and is asked every query of the dashboards; checks and tries the alert rules
poppler-utils|pdftotext|reads the PDFs that were made: text, fonts, attachments
openssl|openssl|makes an authority and certificates for PostgreSQL and NATS over TLS
qpdf|qpdf|checks the PDFs' structure
libreoffice-writer|soffice|reads the DOCX that were made and lays them out
chromium|chromium|prints the HTML that was made
default-jdk-headless|javac|runs the callers of docs/java, which call as Feign does
curl|curl|runs the calls that docs/migration.md shows, and saves documents under the name that their header gives
python3|python3|runs the Python that docs/migration.md shows
"
# Cargo package, program, purpose.
CARGO_PACKAGES="
cargo-nextest|cargo-nextest|runs each test in a process of its own and ends those that hang
cargo-deny|cargo-deny|checks licences, sources and banned crates
"

present() {
    # shellcheck disable=SC2086 # a pattern is meant to expand
    case $1 in /*) ls $1 >/dev/null 2>&1 ;; *) command -v "$1" >/dev/null 2>&1 ;; esac
}
