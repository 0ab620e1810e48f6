//! A custom run as the user fills it in, and what is wrong with it.

use compute::bench::suite::Selection;
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;

use super::text;

/// Largest minibatch that is taken for meant.
const LARGEST_MINIBATCH: usize = 65_536;

/// What the user has filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Custom {
    /// Networks.
    pub models: Vec<Model>,
    /// Passes.
    pub passes: Vec<Pass>,
    /// Precisions.
    pub precisions: Vec<Precision>,
    /// Minibatches as typed, separated by commas or spaces.
    pub minibatches: String,
    /// Bound of seconds a run.
    pub max_seconds: u32,
}

impl Default for Custom {
    fn default() -> Self {
        Self {
            models: vec![Model::Alexnet, Model::Resnet50],
            passes: Pass::ALL.to_vec(),
            precisions: vec![Precision::F32],
            minibatches: "16".to_owned(),
            max_seconds: 60,
        }
    }
}

impl Custom {
    /// What is to be run, or what is missing, in one sentence.
    ///
    /// # Errors
    /// What is missing, in words for the user.
    pub fn selection(&self) -> Result<Selection, String> {
        if self.models.is_empty() {
            return Err(text::custom_without_model().to_owned());
        }
        if self.passes.is_empty() {
            return Err(text::custom_without_pass().to_owned());
        }
        if self.precisions.is_empty() {
            return Err(text::custom_without_precision().to_owned());
        }
        Ok(Selection {
            suite: None,
            tier: Default::default(),
            models: self.models.clone(),
            passes: self.passes.clone(),
            precisions: self.precisions.clone(),
            minibatches: minibatches(&self.minibatches)?,
            iterations: None,
            max_seconds: Some(f64::from(self.max_seconds)),
            profile: false,
        })
    }
}

fn minibatches(typed: &str) -> Result<Vec<usize>, String> {
    let words = typed.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|word| !word.is_empty());
    let mut all = Vec::new();
    for word in words {
        match word.parse() {
            Ok(minibatch) if (1..=LARGEST_MINIBATCH).contains(&minibatch) => all.push(minibatch),
            _ => return Err(text::not_a_minibatch(word, LARGEST_MINIBATCH)),
        }
    }
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { Err(text::custom_without_minibatch().to_owned()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minibatches_are_read_as_people_type_them() {
        for (typed, expected) in
            [("16", vec![16]), (" 64, 8;16 ", vec![8, 16, 64]), ("1 2 4 4", vec![1, 2, 4]), ("65536", vec![65_536])]
        {
            assert_eq!(minibatches(typed), Ok(expected), "{typed:?}");
        }
        for wrong in ["", " , ", "0", "16.5", "-3", "many", "65537", "99999999999999999999"] {
            let reason = minibatches(wrong).expect_err("it is no list of minibatches");
            assert!(!reason.is_empty(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let full = Custom::default();
        assert!(full.selection().is_ok());
        let cases = [
            (Custom { models: vec![], ..full.clone() }, text::custom_without_model()),
            (Custom { passes: vec![], ..full.clone() }, text::custom_without_pass()),
            (Custom { precisions: vec![], ..full.clone() }, text::custom_without_precision()),
            (Custom { minibatches: String::new(), ..full }, text::custom_without_minibatch()),
        ];
        for (custom, reason) in cases {
            assert_eq!(custom.selection(), Err(reason.to_owned()));
        }
    }
}
