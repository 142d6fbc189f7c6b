//! The ids of a batch, as `aegis.uuid7_nth` makes them: one moment and one draw of randomness by the database, and the task's
//! number behind the moment, so that ids follow each other in the index.

use uuid::Uuid;

/// The id of task number `n` of a batch.
pub(super) fn uuid7_nth(ms: i64, random: i64, n: usize) -> Uuid {
    let n = n as u64;
    let high = (ms.cast_unsigned().wrapping_add(n >> 14) << 16) | 0x7000 | ((n >> 2) & 0xfff);
    let low = (1 << 63) | ((n & 3) << 60) | (random.cast_unsigned() & 0x0fff_ffff_ffff_ffff);
    Uuid::from_u64_pair(high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_batch_are_version_7_and_ascend_across_every_carry() {
        let ids: Vec<Uuid> = (0..=40_000)
            .map(|n| uuid7_nth(1_234_567_890_123, i64::MAX, n))
            .collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        for id in &ids {
            assert_eq!(id.get_version_num(), 7);
            assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        }
    }
}
