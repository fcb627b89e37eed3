//! What can go wrong with contexts and pages.

use thiserror::Error;

use super::ContextId;

/// A request that the cache refuses; nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CacheError {
    /// A context that was freed, or is of another cache.
    #[error("context {context} does not exist: it was freed, or belongs to another cache")]
    UnknownContext {
        /// The context.
        context: ContextId,
    },
    /// No page is left where one is needed.
    #[error(
        "context {context} needs {needed} more pages of 16 positions, but only {free} of {total} are free (and {evictable} more held by \
         unused prefixes); free a context, or use a larger pool"
    )]
    OutOfPages {
        /// The context.
        context: ContextId,
        /// Pages that the request needs.
        needed: usize,
        /// Free pages.
        free: usize,
        /// Pages of prefixes that no context uses.
        evictable: usize,
        /// Pages of the pool.
        total: usize,
    },
    /// Pages are free, but only on PEs that hold a page of the same round already.
    #[error(
        "context {context} needs a page on a PE that has none left: the {free} free pages of {total} lie on PEs that hold a neighbour of it, and          a second one there would slow every launch; free a context, or use a larger pool"
    )]
    Uneven {
        /// The context.
        context: ContextId,
        /// Free pages.
        free: usize,
        /// Pages of the pool.
        total: usize,
    },
    /// A context longer than positions can be counted.
    #[error("context {context} would have {length} positions; at most {limit} can be addressed")]
    TooLong {
        /// The context.
        context: ContextId,
        /// Positions asked for.
        length: usize,
        /// Positions that 32 bits address, in whole pages.
        limit: usize,
    },
    /// A context cut to more than it has.
    #[error("context {context} has {length} positions and cannot be cut to {to}")]
    Truncate {
        /// The context.
        context: ContextId,
        /// Its positions.
        length: usize,
        /// Positions asked for.
        to: usize,
    },
    /// Tokens that do not describe the context.
    #[error("context {context} has {length} positions, but {tokens} tokens are given for it")]
    Tokens {
        /// The context.
        context: ContextId,
        /// Its positions.
        length: usize,
        /// Tokens given.
        tokens: usize,
    },
}
