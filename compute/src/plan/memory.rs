use super::*;
pub(super) fn assign_slots(_plan: &mut Plan) {}
