use super::*;
pub(super) fn training(_graph: &Graph, _precision: Precision, _minibatch: usize) -> Result<Plan, PlanError> {
    todo!()
}
