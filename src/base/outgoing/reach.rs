//! What kind of place an IP address leads to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To a host of the public internet.
    Public,
    /// Into this machine or a network of its owner: loopback, private, shared (CGNAT) and special-purpose addresses.
    Private,
    /// To what no agenda and no webhook lies at: link-local addresses and the cloud's metadata and platform services among them, "this host", multicast,
    /// reserved addresses, and tunnels whose end cannot be told.
    Never,
}

/// A network: its first address, and how many of the leading bits belong to it.
type Network<A> = (A, u32);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32) -> Network<Ipv4Addr> {
    (Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, bits: u32) -> Network<Ipv6Addr> {
    (Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}

/// This host, link-local, 6to4 relays, multicast, reserved; and services of cloud providers at addresses that look like ordinary ones: Alibaba's metadata,
/// Azure's platform, Oracle's metadata.
const NEVER_V4: [Network<Ipv4Addr>; 8] = [
    v4(0, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(192, 88, 99, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
    v4(100, 100, 100, 200, 32),
    v4(168, 63, 129, 16, 32),
    v4(192, 0, 0, 192, 32),
];
/// Private, loopback, shared; then protocol assignments, documentation, benchmarks.
const PRIVATE_V4: [Network<Ipv4Addr>; 10] = [
    v4(10, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
    v4(127, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(198, 18, 0, 0, 15),
];
/// Teredo and 6to4: tunnels that end at an IPv4 address, too, but who carries them decides how. And Amazon's metadata service, whose whole /32 is Amazon's own.
const NEVER_V6: [Network<Ipv6Addr>; 3] = [v6(0x2001, 0, 32), v6(0x2002, 0, 16), v6(0xFD00, 0x0EC2, 32)];
/// Unique local; site-local, long withdrawn; protocol assignments; documentation (twice); loopback.
const PRIVATE_V6: [Network<Ipv6Addr>; 6] =
    [v6(0xFC00, 0, 7), v6(0xFEC0, 0, 10), v6(0x2001, 0, 23), v6(0x2001, 0xDB8, 32), v6(0x3FFF, 0, 20), (Ipv6Addr::LOCALHOST, 128)];
/// What has been given to anybody at all. The rest is never asked: unspecified, IPv4-compatible, local NAT64, link-local, multicast, and what is still free.
const GLOBAL_V6: Network<Ipv6Addr> = v6(0x2000, 0, 3);
/// Addresses that stand for IPv4 ones: mapped (RFC 4291), and translated by NAT64's well-known prefix (RFC 6052).
const STAND_FOR_V4: [Network<Ipv6Addr>; 2] =
    [(Ipv6Addr::new(0, 0, 0, 0, 0, 0xFFFF, 0, 0), 96), (Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, 0, 0), 96)];

impl Reach {
    /// After the IANA registries of special-purpose addresses (RFC 6890). An IPv6 address that stands for an IPv4 one is judged by that.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let within = |networks: &[Network<Ipv4Addr>]| {
            let same = |(first, bits): &Network<Ipv4Addr>| (address.to_bits() ^ first.to_bits()).leading_zeros() >= *bits;
            networks.iter().any(same)
        };
        if within(&NEVER_V4) {
            Self::Never
        } else if within(&PRIVATE_V4) {
            Self::Private
        } else {
            Self::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let within = |networks: &[Network<Ipv6Addr>]| {
            let same = |(first, bits): &Network<Ipv6Addr>| (address.to_bits() ^ first.to_bits()).leading_zeros() >= *bits;
            networks.iter().any(same)
        };
        if within(&STAND_FOR_V4) {
            let [.., a, b, c, d] = address.octets();
            Self::of_v4(Ipv4Addr::new(a, b, c, d))
        } else if within(&PRIVATE_V6) && !within(&NEVER_V6) {
            Self::Private
        } else if within(&[GLOBAL_V6]) && !within(&NEVER_V6) {
            Self::Public
        } else {
            Self::Never
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(reach: Reach, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(Reach::of(text.parse().unwrap()), reach, "{text}");
        }
    }

    #[test]
    fn public_hosts_are_public() {
        all(Reach::Public, &["8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255"]);
        all(Reach::Public, &["2606:4700::1111", "2a00:1450:4001::8a", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]);
    }

    #[test]
    fn what_is_the_owners_own_is_private() {
        all(
            Reach::Private,
            &["127.0.0.1", "127.255.0.9", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.1.1"],
        );
        all(Reach::Private, &["192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.1", "198.51.100.7", "203.0.113.9"]);
        all(Reach::Private, &["::1", "fd00::1", "fc12::1", "fec0::1", "2001:db8::1", "3fff:1::1", "2001:10::1"]);
        all(Reach::Private, &["::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::192.168.0.1", "64:ff9b::100.64.0.1"]);
    }

    #[test]
    fn nobody_lies_at_these() {
        all(
            Reach::Never,
            &["0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"],
        );
        all(Reach::Never, &["100.100.100.200", "168.63.129.16", "192.0.0.192", "192.88.99.1"]);
        all(Reach::Never, &["::", "fe80::1", "febf::1", "ff02::1", "fd00:ec2::254", "::ffff:169.254.169.254", "::ffff:0.0.0.0"]);
        all(Reach::Never, &["::169.254.169.254", "::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::10.0.0.1", "2002:a9fe:a9fe::1"]);
        all(Reach::Never, &["2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "4000::1", "1::1"]);
    }
}
