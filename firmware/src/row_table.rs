//! The row table: which KV positions each row sees.

use alloc::vec::Vec;
use core::ops::Range;

use braid_isa::RANGES_PER_PASS;
use braid_isa::layout::ROW_TABLE_WORDS;

/// The passes in which a row's ranges are served: sorted, overlapping and adjacent ones united, empty ones dropped, four at a time. They depend on the
/// row's own ranges alone, so a row's bits do not depend on its neighbours.
pub fn passes(ranges: &[Range<u32>]) -> Vec<Vec<Range<u32>>> {
    let mut sorted: Vec<Range<u32>> = ranges.iter().filter(|r| r.start < r.end).cloned().collect();
    sorted.sort_by_key(|r| (r.start, r.end));
    let mut united: Vec<Range<u32>> = Vec::new();
    for range in sorted {
        match united.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united.chunks(RANGES_PER_PASS).map(<[Range<u32>]>::to_vec).collect()
}

/// The tables of all passes, as SRAM bytes: per row two 128-bit words of four (first, end) pairs. At least one table, so that every row is
/// described.
pub fn tables<'a>(rows: impl Iterator<Item = &'a [Range<u32>]>) -> Vec<Vec<u8>> {
    let rows: Vec<Vec<Vec<Range<u32>>>> = rows.map(passes).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
    (0..count)
        .map(|pass| {
            let mut bytes = Vec::with_capacity(rows.len() * ROW_TABLE_WORDS * 16);
            for row in &rows {
                let mut entry = [0u32; 2 * RANGES_PER_PASS];
                for (pair, range) in entry.chunks_exact_mut(2).zip(row.get(pass).into_iter().flatten()) {
                    pair.copy_from_slice(&[range.start, range.end]);
                }
                entry.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            }
            bytes
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a row with one range is a list of one range")]
    fn ranges_are_united_before_they_are_counted() {
        assert_eq!(passes(&[5..5, 3..9, 0..4, 9..12, 20..21]), vec![vec![0..12, 20..21]]);
        assert_eq!(passes(&[7..7]), Vec::<Vec<Range<u32>>>::new());
    }

    #[test]
    fn a_row_with_many_ranges_takes_several_tables_and_the_others_rest_in_them() {
        let many: Vec<Range<u32>> = (0..6).map(|i| i * 10..i * 10 + 3).collect();
        let rows: [&[Range<u32>]; 2] = [&many, &[]];
        let tables = tables(rows.into_iter());
        assert_eq!(tables.len(), 2);
        assert_eq!(&tables[1][..8], &[40, 0, 0, 0, 43, 0, 0, 0]);
        assert!(tables[1][32..].iter().all(|&b| b == 0));
    }

    #[test]
    fn no_row_is_left_undescribed() {
        let rows: [&[Range<u32>]; 1] = [&[]];
        assert_eq!(tables(rows.into_iter()), vec![vec![0; 32]]);
    }
}
