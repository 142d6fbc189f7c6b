//! Domains, by the set and by the catalog.

use super::{Domain, World};
use crate::form::TypeName;
use crate::name::QualifiedName;

impl World<'_> {
    pub(in crate::judge) fn said_domain(&mut self, name: &QualifiedName, domain: Domain) {
        let name = self.name(name);
        self.domains.insert(name, domain);
    }

    /// A domain by the set, else by the catalog. None: it is none, or not known here.
    pub(in crate::judge) fn domain(&self, name: &QualifiedName) -> Option<Domain> {
        let name = self.name(name);
        if let Some(said) = self.domains.get(&name) {
            return Some(said.clone());
        }
        let def = self
            .catalog?
            .types
            .iter()
            .find(|one| one.name == name && one.kind == aegis_catalog::TypeKind::Domain)?;
        Some(Domain {
            constrained: !def.constraints.is_empty() || def.not_null,
            base: crate::judge::types::read(def.base.as_deref()?)?,
            default: def
                .default
                .as_deref()
                .and_then(crate::judge::types::read_default),
        })
    }

    /// What a column of this type has of domains: whether a constraint is on one, and the first default. None: it is no domain.
    pub(in crate::judge) fn domains_below(&self, name: &QualifiedName) -> Option<Domain> {
        const DEPTH_MAX: usize = 16;
        let mut found = self.domain(name)?;
        for _ in 0..DEPTH_MAX {
            let Some(below) = self.domain(&found.base.base) else {
                break;
            };
            found.constrained |= below.constrained;
            found.default = found.default.or(below.default);
            found.base = below.base;
        }
        Some(found)
    }

    /// The type below domains that constrain nothing. None: it is no such domain.
    pub(in crate::judge) fn plain_type(&self, of: &TypeName) -> Option<TypeName> {
        let domain = self.domains_below(&of.base)?;
        (!domain.constrained && !of.array).then_some(domain.base)
    }
}
