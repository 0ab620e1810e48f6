use super::*;
pub(super) fn inference(_graph: &Graph, _precision: Precision, _minibatch: usize) -> Result<Plan, PlanError> {
    todo!()
}
