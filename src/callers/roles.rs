//! A set of roles: what a call may do.

use crate::base::config::Role;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Roles(u8);

impl Roles {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self::of(&[Role::Legacy, Role::Submit, Role::Read, Role::Admin]);

    #[must_use]
    pub const fn of(roles: &[Role]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < roles.len() {
            bits |= bit(roles[index]);
            index += 1;
        }
        Self(bits)
    }

    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & bit(role) != 0
    }

    /// Whether the two sets share a role.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

const fn bit(role: Role) -> u8 {
    match role {
        Role::Legacy => 1,
        Role::Submit => 2,
        Role::Read => 4,
        Role::Admin => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_meet_when_they_share_a_role() {
        let set = Roles::of(&[Role::Submit, Role::Read]);
        assert!(set.has(Role::Read) && !set.has(Role::Admin));
        assert!(set.meets(Roles::of(&[Role::Admin, Role::Submit])));
        assert!(!set.meets(Roles::of(&[Role::Legacy])));
        assert!(!Roles::NONE.meets(Roles::ALL));
    }
}
