//! Which parts of the model are resident, and who needs them (DESIGN section 10).
//!
//! A lease is a named owner's claim on a component. A component stays while any owner remains; without one it may be
//! released, and comes back before its next use.

use crate::backend::{Backend, BackendError, Component};
use crate::lanes::scheduler::RequestId;
use std::collections::{BTreeMap, BTreeSet};

/// The claims on each component.
#[derive(Debug, Default)]
pub struct Leases {
    owners: BTreeMap<Component, BTreeSet<RequestId>>,
}

impl Leases {
    /// Claims a component for a request, loading it where it is not there.
    ///
    /// # Errors
    /// When it cannot be loaded: then nothing is claimed, and everybody else's claims are as before.
    pub fn acquire(
        &mut self,
        backend: &mut dyn Backend,
        component: Component,
        owner: RequestId,
    ) -> Result<(), BackendError> {
        backend.attach(component)?;
        self.owners.entry(component).or_default().insert(owner);
        Ok(())
    }

    /// Ends all claims of a request.
    pub fn release_all(&mut self, owner: RequestId) {
        for owners in self.owners.values_mut() {
            owners.remove(&owner);
        }
    }

    /// Releases every component that nobody claims; returns the bytes given back.
    pub fn sweep(&self, backend: &mut dyn Backend) -> usize {
        let mut bytes = 0;
        for component in Component::ALL {
            if self.owners(component).next().is_none() {
                bytes += backend.component_bytes(component);
                backend.detach(component);
            }
        }
        bytes
    }

    /// Who claims a component.
    pub fn owners(&self, component: Component) -> impl Iterator<Item = RequestId> + '_ {
        self.owners.get(&component).into_iter().flatten().copied()
    }
}
