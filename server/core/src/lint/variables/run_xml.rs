//! The `<env>` elements of a PyCharm run configuration.

use roxmltree::Document;

use crate::config::{Edit, run_xml};

use super::{Setting, Variable};

pub fn variables(text: &str) -> Vec<Variable> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let ours = run_xml::read(text).is_ok_and(|configuration| configuration.is_ours());
    let elements = document.descendants().filter(|node| node.has_tag_name("env"));
    let variables = elements.filter_map(|element| {
        let value = element.attribute_node("value");
        Some(Variable {
            name: element.attribute("name")?.to_owned(),
            value: value.map(|value| value.value().to_owned()),
            range: element.range(),
            value_range: value.map(|value| value.range_value()),
            removal: Some(removal(text, element.range())),
            setting: if ours { Setting::Ours } else { Setting::RunConfiguration },
        })
    });
    variables.collect()
}

/// The element's whole line where it has one for itself.
fn removal(text: &str, range: std::ops::Range<usize>) -> Vec<Edit> {
    let line_start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at + 1);
    let alone = text[line_start..range.start].trim().is_empty() && text[range.end..line_end].trim().is_empty();
    vec![if alone { Edit::delete(line_start, line_end) } else { Edit::delete(range.start, range.end) }]
}
