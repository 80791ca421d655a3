//! For any run configuration: bytes that are not ours stay, twice is once, and what is undone is undone.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

proptest! {
    #[test]
    fn a_switch_touches_nothing_else_and_can_be_undone(text in file(), first in mode(), second in mode()) {
        let (edits, record) = switch(&text, "f", first, None).unwrap();
        let switched = apply(&text, &edits);
        prop_assert_eq!(read(&switched).unwrap().mode(), Some(first));
        let (before, after) = (read(&text).unwrap(), read(&switched).unwrap());
        prop_assert_eq!(foreign(&after), foreign(&before));
        prop_assert_eq!(&switch(&switched, "f", first, Some(&record)).unwrap(), &(Vec::new(), record.clone()));
        let (edits, record) = switch(&switched, "f", second, Some(&record)).unwrap();
        let again = apply(&switched, &edits);
        prop_assert_eq!(apply(&again, &switch_back(&again, &record).unwrap()), text);
    }

    #[test]
    fn a_copy_differs_in_its_name_and_our_variables(text in file(), mode in mode()) {
        let copied = copy(&text, mode).unwrap();
        let (before, after) = (read(&text).unwrap(), read(&copied).unwrap());
        prop_assert_eq!(&after.name, &name_of_copy(&before.name, mode));
        prop_assert!(after.is_ours());
        prop_assert_eq!(foreign(&after), foreign(&before));
        prop_assert_eq!(after.options, before.options);
    }
}

fn foreign(configuration: &RunConfiguration) -> Vec<&(String, String)> {
    configuration.envs.iter().filter(|(name, _)| !OUR_SHARED_VARIABLES.contains(&name.as_str())).collect()
}

fn mode() -> impl Strategy<Value = Mode> {
    select(&Mode::ALL[..])
}

fn gap() -> impl Strategy<Value = String> {
    let piece = select(vec![" ", "\n", "\r\n", "\t", "    ", "<!-- <envs> -->", "<?pi >?>"]);
    vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = String> {
    select(vec!["\"\"", "'a'", "\"1\"", "\"&quot;&#10;é\"", "'\"<x/>'", "\"$PROJECT_DIR$\""])
        .prop_map(|value| value.replace('<', "&lt;"))
}

fn env() -> impl Strategy<Value = String> {
    let name = select(vec!["A", "B C", "CUDA_LAUNCH_BLOCKING", "CUBLAME_MODE"]);
    let form = select(vec![
        "<env name=\"N\" value=V/>",
        "<env\tvalue=V\n name='N'  ></env>",
        "<env name=\"N\"/>",
        "<env name='N' value=V />",
    ]);
    (form, name, value()).prop_map(|(form, name, value)| form.replace('N', name).replace('V', &value))
}

fn envs() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["", "<envs/>", "<envs />", "<envs></envs>", "<envs>\n    </envs>"]).prop_map(str::to_owned),
        vec((gap(), env()), 1..4).prop_map(|items| {
            let items: String = items.into_iter().map(|(gap, env)| gap + &env).collect();
            format!("<envs>{items}\n</envs>")
        }),
    ]
}

fn element() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["PARENT_ENVS", "SDK_HOME", "SCRIPT_NAME", "UNKNOWN"])
            .prop_flat_map(|name| value().prop_map(move |value| format!("<option name=\"{name}\" value={value} />"))),
        Just("<EXTENSION ID=\"x\"><envs><env name=\"CUBLAME_MODE\" value=\"?\"/></envs></EXTENSION>".to_owned()),
        Just("<method v=\"2\" />".to_owned()),
        Just("<module name='proj'></module>".to_owned()),
    ]
}

fn file() -> impl Strategy<Value = String> {
    let before = vec((gap(), element()), 0..3);
    let after = vec((gap(), element()), 0..3);
    let attributes =
        select(vec!["", " nameIsGenerated='true'", "\n  default=\"true\" temporary=\"true\" folderName=\"x\""]);
    (any::<bool>(), attributes, value(), before, gap(), envs(), after, gap()).prop_map(
        |(mark, attributes, name, before, gap, envs, after, end)| {
            let join = |items: Vec<(String, String)>| -> String { items.into_iter().map(|(gap, item)| gap + &item).collect() };
            format!(
                "{}<component name=\"ProjectRunConfigurationManager\">\n  <configuration name={name}{attributes}>{}{gap}{envs}{}{end}</configuration>\n</component>",
                if mark { "\u{feff}" } else { "" },
                join(before),
                join(after),
            )
        },
    )
}
