//! Which addresses the built-in HTTP call may connect to: a task's input must not reach what only this machine can reach.
//!
//! Invariants: every address is vetted after it was resolved, in its innermost form (IPv4 inside IPv6 too); what is not known
//! to be public is private.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses may be called. Public ones only, unless more is allowed.
#[derive(Debug, Clone, Default)]
pub struct HttpPolicy {
    loopback: bool,
    private: bool,
    addresses: Vec<IpAddr>,
}

impl HttpPolicy {
    /// Public addresses only.
    pub fn public_only() -> Self {
        Self::default()
    }

    /// Also this machine's loopback: for development and tests.
    #[must_use]
    pub fn allow_loopback(mut self) -> Self {
        self.loopback = true;
        self
    }

    /// Also private networks (RFC 1918, unique local, shared): for downstreams inside a cluster. Never loopback, link-local
    /// or the cloud's metadata address.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.private = true;
        self
    }

    /// Also exactly this address.
    #[must_use]
    pub fn allow_address(mut self, address: IpAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// May it be connected to?
    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        let inner = innermost(address);
        if self.addresses.iter().any(|one| innermost(*one) == inner) {
            return true;
        }
        match reach(inner) {
            Reach::Public => true,
            Reach::Loopback => self.loopback,
            Reach::Private => self.private,
            Reach::Never => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Public,
    Loopback,
    Private,
    /// Link-local (cloud metadata), multicast, unspecified, reserved.
    Never,
}

/// IPv4 that hides in IPv6: mapped, compatible, NAT64, 6to4.
fn innermost(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    match v6.segments() {
        // Unspecified and loopback are IPv6's own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => {
            IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => address,
    }
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => reach_v6(v6),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Reach::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Reach::Private,
        // This network, link-local, documentation, benchmarking, protocol assignments, multicast, reserved, broadcast.
        (0 | 224.., ..)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (198, 51, 100)
        | (203, 0, 113)
        | (198, 18 | 19, _) => Reach::Never,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let [first, second, ..] = address.segments();
    match first {
        0 if address == Ipv6Addr::LOCALHOST => Reach::Loopback,
        0xfc00..=0xfdff => Reach::Private,
        // Global unicast, without documentation and Teredo.
        0x2001 if matches!(second, 0xdb8 | 0) => Reach::Never,
        0x2000..=0x3fff => Reach::Public,
        _ => Reach::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(policy: &HttpPolicy, address: &str) -> bool {
        policy.admits(address.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_unless_more_is_allowed() {
        let policy = HttpPolicy::public_only();
        for public in ["1.1.1.1", "93.184.216.34", "2606:4700::1111"] {
            assert!(admits(&policy, public), "{public}");
        }
        for closed in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::",
            "0.0.0.0",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "224.0.0.1",
            "255.255.255.255",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "2001:db8::1",
            "198.18.0.1",
        ] {
            assert!(!admits(&policy, closed), "{closed}");
        }
    }

    #[test]
    fn what_is_allowed_is_no_more_than_was_said() {
        let loopback = HttpPolicy::default().allow_loopback();
        assert!(admits(&loopback, "127.0.0.1") && admits(&loopback, "::ffff:127.0.0.1"));
        assert!(!admits(&loopback, "10.0.0.1"));
        let private = HttpPolicy::default().allow_private();
        assert!(admits(&private, "10.0.0.1") && admits(&private, "fd00::1"));
        assert!(!admits(&private, "127.0.0.1") && !admits(&private, "169.254.169.254"));
        let one = HttpPolicy::default().allow_address("10.0.0.7".parse().unwrap());
        assert!(admits(&one, "10.0.0.7") && !admits(&one, "10.0.0.8"));
    }
}
