//! Where K and V of every layer and KV head lie in channel memory.

use braid_isa::TILE;
use braid_isa::geometry::MIN_HEAD_DIM;
use braid_isa::layout::{HostAddress, page_beats};
use braid_isa::{BEAT_BYTES, LANES};

use crate::cache::PageId;

/// Columns as the hardware holds them: a multiple of eight, at least sixteen; the padding is zero and changes nothing.
pub fn padded_head_dim(head_dim: usize) -> usize {
    head_dim.next_multiple_of(LANES).max(MIN_HEAD_DIM)
}

/// A page of every plane lies at the same place within its plane; a plane is one KV head of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// Layers.
    pub layers: usize,
    /// KV heads of a layer.
    pub kv_heads: usize,
    /// Columns of a head, before padding.
    pub head_dim: usize,
    /// Pages of a plane on one PE.
    pub pages_per_pe: usize,
}

/// Bytes to write, and where.
pub type Write = (HostAddress, Vec<u8>);

impl KvLayout {
    /// Planes of all layers.
    pub fn planes(&self) -> usize {
        self.layers * self.kv_heads
    }

    /// Plane of a KV head of a layer.
    pub fn plane(&self, layer: usize, kv_head: usize) -> usize {
        layer * self.kv_heads + kv_head
    }

    /// Columns with their padding.
    pub fn padded_head_dim(&self) -> usize {
        padded_head_dim(self.head_dim)
    }

    /// Beats of a page.
    pub fn page_beats(&self) -> usize {
        page_beats(self.padded_head_dim())
    }

    /// Beats that each channel must have.
    pub fn channel_beats(&self) -> u64 {
        self.planes() as u64 * self.pages_per_pe as u64 * self.page_beats() as u64
    }

    /// First beat of a page.
    pub fn beat(&self, plane: usize, slot: usize) -> usize {
        (plane * self.pages_per_pe + slot) * self.page_beats()
    }

    /// Address of a page.
    pub fn address(&self, plane: usize, page: PageId) -> HostAddress {
        HostAddress::channel_beat(page.pe, self.beat(plane, page.slot))
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_beats() * BEAT_BYTES
    }

    /// Writes that put the K and V of `k.len()` positions into a page, from its position `offset` on. From 0 on it is one burst that clears the rest of
    /// the page; further on K is one write and V, which is stored transposed, one a column.
    pub fn writes(&self, plane: usize, page: PageId, offset: usize, k: &[&[u16]], v: &[&[u16]]) -> Vec<Write> {
        let columns = self.padded_head_dim();
        let base = self.beat(plane, page.slot) * BEAT_BYTES;
        let at = |element: usize| HostAddress::Channel { pe: page.pe, byte: (base + 2 * element) as u32 };
        if offset == 0 {
            let mut elements = vec![0u16; 2 * TILE * columns];
            for (j, (k, v)) in k.iter().zip(v).enumerate() {
                elements[j * columns..][..k.len()].copy_from_slice(k);
                for (c, &x) in v.iter().enumerate() {
                    elements[TILE * columns + c * TILE + j] = x;
                }
            }
            return vec![(at(0), bytes(elements))];
        }
        let mut rows = vec![0u16; k.len() * columns];
        for (row, k) in rows.chunks_exact_mut(columns).zip(k) {
            row[..k.len()].copy_from_slice(k);
        }
        let mut writes = vec![(at(offset * columns), bytes(rows))];
        for c in 0..self.head_dim {
            writes.push((at(TILE * columns + c * TILE + offset), bytes(v.iter().map(|v| v[c]))));
        }
        writes
    }
}

fn bytes(elements: impl IntoIterator<Item = u16>) -> Vec<u8> {
    elements.into_iter().flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_written_in_steps_equals_one_written_at_once() {
        let layout = KvLayout { layers: 2, kv_heads: 3, head_dim: 20, pages_per_pe: 4 };
        let page = PageId { pe: 1, slot: 2 };
        let row = |seed: u16| (0..20).map(|c| seed * 100 + c).collect::<Vec<u16>>();
        let (k, v): (Vec<_>, Vec<_>) = (1..17).map(|j| (row(j), row(100 + j))).unzip();
        let image = |steps: &[usize]| {
            let mut memory = vec![0u8; layout.channel_beats() as usize * BEAT_BYTES];
            let mut from = 0;
            for &to in steps {
                let [k, v] = [&k, &v].map(|rows| rows[from..to].iter().map(Vec::as_slice).collect::<Vec<&[u16]>>());
                for (address, bytes) in layout.writes(layout.plane(1, 2), page, from, &k, &v) {
                    let HostAddress::Channel { pe: 1, byte } = address else { panic!("PE 1's channel") };
                    memory[byte as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                from = to;
            }
            memory
        };
        let whole = image(&[16]);
        assert_eq!(image(&[1, 2, 9, 16]), whole);
        // The last plane's third page: what lies outside is untouched.
        let start = (5 * 4 + 2) * layout.page_bytes();
        assert!(whole[..start].iter().chain(&whole[start + layout.page_bytes()..]).all(|&b| b == 0));
    }
}
