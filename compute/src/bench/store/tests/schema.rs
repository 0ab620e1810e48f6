//! What is written agrees with the published JSON Schema.

use super::*;
use crate::bench::record::json_schema;

/// What of `value` a schema does not allow, as the keywords that the published schema uses have it.
fn violations(value: &Value, schema: &Value, root: &Value, place: &str, found: &mut Vec<String>) {
    let Value::Object(keywords) = schema else { return };
    for (keyword, rule) in keywords {
        let holds = match keyword.as_str() {
            "$ref" => {
                let target = rule.as_str().and_then(|name| root.pointer(name.trim_start_matches('#')));
                violations(value, target.expect("references lead somewhere"), root, place, found);
                true
            }
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_of(value, kind)),
                kind => is_of(value, kind),
            },
            "const" => value == rule,
            "minimum" => value.as_f64().is_none_or(|number| Some(number) >= rule.as_f64()),
            "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|list| list.len() as u64 <= rule.as_u64().unwrap()),
            "anyOf" | "oneOf" => rule.as_array().unwrap().iter().any(|schema| {
                let mut inner = Vec::new();
                violations(value, schema, root, place, &mut inner);
                inner.is_empty()
            }),
            "required" => rule.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
            "properties" => {
                for (key, schema) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        violations(value, schema, root, &format!("{place}/{key}"), found);
                    }
                }
                true
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    violations(item, rule, root, &format!("{place}/[]"), found);
                }
                true
            }
            "additionalProperties" => rule != &Value::Bool(false),
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
            other => panic!("the schema uses {other:?}, which this test does not know"),
        };
        if !holds {
            found.push(format!("{place}: {keyword} {rule}"));
        }
    }
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other:?}"),
    }
}

fn check(value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let mut found = Vec::new();
    violations(value, &schema, &schema, "", &mut found);
    found
}

#[test]
fn a_written_file_agrees_with_the_published_schema() {
    let mut store = Store::open(None, Some("desk")).unwrap();
    store.add(record(1), Some(&device("A"))).unwrap();
    let failed = Record { status: Status::OutOfMemory, reason: Some("no".to_owned()), timing: None, ..record(2) };
    store.add(failed, None).unwrap();
    store.add(published(), None).unwrap();
    let mut value: Value = serde_json::from_str(&text(store.file()).unwrap()).unwrap();
    assert_eq!(check(&value), Vec::<String>::new());
    value["records"][0]["status"] = json!("melted");
    value["records"][1]["minibatch"] = json!("many");
    value["devices"][0].as_object_mut().unwrap().remove("name");
    let found = check(&value);
    for place in ["/devices/[]: required", "/records/[]/status: oneOf", "/records/[]/minibatch: type"] {
        assert!(found.iter().any(|violation| violation.starts_with(place)), "{place} in {found:?}");
    }
}
