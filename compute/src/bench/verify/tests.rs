use super::*;
use crate::models::Model;

#[test]
fn stored_outputs_are_those_of_the_current_definitions() {
    for model in Model::ALL {
        let graph = model.graph();
        let stored = stored::stored(model).unwrap_or_else(|| panic!("no stored outputs of {model}"));
        assert_eq!(stored.definition, stored::definition(&graph), "run `batchmark reference` to renew {model}");
        for (pass, answer) in [(Pass::Forward, stored.forward), (Pass::ForwardBackward, stored.forward_backward)] {
            assert_eq!(answer.logits.len(), MINIBATCH * graph.classes(), "{model} {pass}");
            assert!(answer.logits.iter().all(|x| x.is_finite()) && answer.logits.iter().any(|&x| x != 0.0), "{model}");
            let plan = Plan::new(&graph, pass, Precision::F32, MINIBATCH).unwrap();
            assert_eq!(answer.loss.is_some(), plan.loss.is_some(), "{model} {pass}");
            let names: Vec<&String> = answer.gradients.iter().map(|(name, _)| name).collect();
            assert_eq!(
                names,
                plan.gradients.iter().map(|gradient| &gradient.name).collect::<Vec<_>>(),
                "{model} {pass}"
            );
            assert!(answer.gradients.iter().all(|(_, norm)| norm.is_finite() && *norm > 0.0), "{model}");
        }
    }
}

#[test]
fn any_quantity_that_is_off_fails_and_is_named() {
    let good = Answer {
        logits: vec![1.0, -2.0, 3.0],
        loss: Some(0.5),
        gradients: vec![
            ("conv1.weight".to_owned(), 4.0),
            ("conv1.bias".to_owned(), 0.0),
            ("conv2.weight".to_owned(), 2.0),
        ],
    };
    let changed = |change: fn(&mut Answer)| {
        let mut answer = good.clone();
        change(&mut answer);
        answer
    };
    let tolerance = Tolerance { outputs: 1e-4, gradients: 6.5e-3, gradient: 1e-2 };
    let cases: [(&str, Answer, Option<&str>); 9] = [
        ("equal", good.clone(), None),
        ("close", changed(|a| a.logits[0] = 1.000_01), None),
        ("logits", changed(|a| a.logits[1] = 2.0), Some("differs")),
        ("logits", changed(|a| a.logits[1] = f32::NAN), Some("not finite")),
        ("logits", changed(|a| a.logits.truncate(2)), Some("not finite")),
        ("loss", changed(|a| a.loss = None), Some("not finite")),
        ("conv1.weight", changed(|a| a.gradients[0].1 = 3.9), Some("differs")),
        // Each is within the tolerance of one.
        ("gradients", changed(|a| (a.gradients[0].1, a.gradients[2].1) = (4.036, 2.018)), Some("differs")),
        ("conv1.bias", changed(|a| a.gradients[1].1 = 0.1), Some("not finite")),
    ];
    for (name, answer, expected) in cases {
        let verification = compare(&answer, &good, tolerance);
        let failure = failure(&verification);
        assert_eq!(verification.passed, expected.is_none(), "{name}: {verification:?}");
        if let Some(expected) = expected {
            assert_eq!(verification.worst.as_deref(), Some(name));
            assert!(failure.is_some_and(|text| text.contains(expected) && text.contains(name)));
        }
    }
}
