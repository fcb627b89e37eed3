//! Paged KV: contexts are page tables over one pool, forks share pages, equal beginnings are found.
//!
//! * [`pool`](PagePool): pages of 16 positions on every PE, returned when their last reader goes
//! * [`table`](PageTable): a context's pages in order, a persistent vector: a fork is a clone of constant cost
//! * [`prefix`](PrefixTree): pages found by the tokens that they hold
//! * [`KvCache`]: the contexts
//!
//! Nothing here touches memory: [`KvCache::append`] says which page must be copied, and where positions lie.
//!
//! ```
//! use braid_runtime::cache::KvCache;
//!
//! let mut cache = KvCache::new(32, 100);
//! let parent = cache.create();
//! cache.append(parent, 1000)?;
//! let child = cache.fork(parent)?;
//! assert_eq!(cache.usage().used, 63);
//! let appended = cache.append(child, 1)?;
//! // The parent's last page is partly filled: whoever writes first continues it, the other copies it.
//! assert!(appended.copy.is_none());
//! assert_eq!(cache.append(parent, 1)?.copy.map(|c| c.positions), Some(8));
//! # Ok::<(), braid_runtime::cache::CacheError>(())
//! ```

mod contexts;
mod error;
mod pool;
mod prefix;
mod table;

#[cfg(test)]
mod tests;

pub use contexts::{Appended, ContextId, KvCache, PageCopy, Usage};
pub use error::CacheError;
pub use pool::{Page, PageId, PagePool};
pub use prefix::{PrefixStatistics, PrefixTree};
pub use table::PageTable;
