use super::*;
use crate::config::launch_json::{Launch, Profile};

const TRAIN: &str = r#"<component name="ProjectRunConfigurationManager">
  <configuration default="false" name="train" type="PythonConfigurationType" factoryName="Python" nameIsGenerated="true">
    <module name="proj" />
    <option name="ENV_FILES" value="" />
    <option name="INTERPRETER_OPTIONS" value="" />
    <option name="PARENT_ENVS" value="true" />
    <envs>
      <env name="PYTHONUNBUFFERED" value="1" />
      <env name="DATA" value="a &amp; &quot;b&quot;" />
    </envs>
    <option name="SDK_HOME" value="" />
    <option name="SDK_NAME" value="Python 3.12 (proj)" />
    <option name="WORKING_DIRECTORY" value="$PROJECT_DIR$" />
    <option name="IS_MODULE_SDK" value="false" />
    <option name="ADD_CONTENT_ROOTS" value="true" />
    <option name="ADD_SOURCE_ROOTS" value="true" />
    <EXTENSION ID="PythonCoverageRunConfigurationExtension" runner="coverage.py" />
    <EXTENSION ID="net.ashald.envfile">
      <option name="IS_ENABLED" value="false" />
    </EXTENSION>
    <option name="SCRIPT_NAME" value="$PROJECT_DIR$/train.py" />
    <option name="PARAMETERS" value="--epochs 70" />
    <option name="SHOW_COMMAND_LINE" value="false" />
    <option name="EMULATE_TERMINAL" value="false" />
    <option name="MODULE_MODE" value="false" />
    <option name="REDIRECT_INPUT" value="false" />
    <option name="INPUT_FILE" value="" />
    <method v="2" />
  </configuration>
</component>"#;

#[test]
fn a_new_file_is_what_pycharm_would_have_written() {
    let launches = [
        Launch::Program("train it.py".to_owned()),
        Launch::Module("proj.train".to_owned()),
        Launch::Pytest("tests".to_owned()),
        Launch::Pytest(String::new()),
        Launch::Torchrun("my proj/train.py".to_owned()),
        Launch::Accelerate("train.py".to_owned()),
    ];
    for launch in launches {
        for module in [None, Some("proj")] {
            let profile = Profile { launch: launch.clone(), mode: Mode::Blocking };
            let read = strictly(&create(&profile, module).unwrap()).unwrap();
            assert_eq!((read.name.clone(), read.mode()), (profile.name(), Some(Mode::Blocking)));
            assert_eq!(read.env("CUDA_LAUNCH_BLOCKING"), Some("1"));
            assert_eq!(read.module.as_deref(), module);
            assert!(read.is_ours() && read.is_python());
        }
    }
    assert_eq!(create(&Profile { launch: Launch::CurrentFile, mode: Mode::Off }, None), None);
}

#[test]
fn each_kind_names_what_is_run() {
    let options = |launch: Launch| read(&create(&Profile { launch, mode: Mode::Off }, None).unwrap()).unwrap().options;
    assert_eq!(options(Launch::Program("a.py".into()))["SCRIPT_NAME"], "$PROJECT_DIR$/a.py");
    let module = options(Launch::Module("proj.train".into()));
    assert_eq!((module["SCRIPT_NAME"].as_str(), module["MODULE_MODE"].as_str()), ("proj.train", "true"));
    assert_eq!(options(Launch::Pytest("tests".into()))["_new_target"], "\"$PROJECT_DIR$/tests\"");
    let torchrun = options(Launch::Torchrun("my proj/t.py".into()));
    assert_eq!(torchrun["PARAMETERS"], "--standalone --nproc_per_node=auto \"$PROJECT_DIR$/my proj/t.py\"");
}

#[test]
fn a_copy_has_our_name_and_variables_and_everything_else() {
    let copied = copy(TRAIN, Mode::Blocking).unwrap();
    let ours = "      <env name=\"CUDA_LAUNCH_BLOCKING\" value=\"1\" />\n      <env name=\"CUBLAME_MODE\" value=\"blocking\" />\n";
    let expected = TRAIN
        .replace("name=\"train\"", "name=\"cublame: train (blocking)\"")
        .replace(" nameIsGenerated=\"true\"", "")
        .replace("    </envs>", &format!("{ours}    </envs>"));
    assert_eq!(copied, expected);
    assert_eq!(strictly(&copied).unwrap().mode(), Some(Mode::Blocking));
    let crlf = TRAIN.replace('\n', "\r\n");
    assert_eq!(copy(&crlf, Mode::Blocking).unwrap(), expected.replace('\n', "\r\n"));
}

#[test]
fn variables_find_their_place_whatever_is_there() {
    let check = |before: &str, after: &str| {
        let file = |envs: &str| {
            TRAIN.replace(
                &TRAIN[TRAIN.find("    <envs>").unwrap()..TRAIN.find("    <option name=\"SDK_HOME").unwrap()],
                envs,
            )
        };
        let (edits, record) = switch(&file(before), ".run/train.run.xml", Mode::Blocking, None).unwrap();
        let switched = apply(&file(before), &edits);
        assert_eq!(switched, file(after));
        let (again, same) = switch(&switched, ".run/train.run.xml", Mode::Blocking, Some(&record)).unwrap();
        assert_eq!((again, &same), (Vec::new(), &record));
        assert_eq!(apply(&switched, &switch_back(&switched, &record).unwrap()), file(before));
    };
    let both = "      <env name=\"CUDA_LAUNCH_BLOCKING\" value=\"1\" />\n      <env name=\"CUBLAME_MODE\" value=\"blocking\" />\n";
    check("", &format!("    <envs>\n{both}    </envs>\n"));
    check("    <envs />\n", &format!("    <envs>\n{both}    </envs>\n"));
    check("    <envs></envs>\n", &format!("    <envs>\n{both}    </envs>\n"));
    check(
        "    <envs><env name='A' value='b'/></envs>\n",
        &format!("    <envs><env name='A' value='b'/>\n{}</envs>\n", both.trim_end()),
    );
    check(
        "    <envs>\n      <!-- mine -->\n      <env value=\"0\" name=\"CUDA_LAUNCH_BLOCKING\"/>\n    </envs>\n",
        "    <envs>\n      <!-- mine -->\n      <env value=\"1\" name=\"CUDA_LAUNCH_BLOCKING\"/>\n      <env name=\"CUBLAME_MODE\" value=\"blocking\" />\n    </envs>\n",
    );
}

#[test]
fn a_second_switch_keeps_the_first_record() {
    let (edits, first) = switch(TRAIN, "f", Mode::Blocking, None).unwrap();
    let blocking = apply(TRAIN, &edits);
    let (edits, second) = switch(&blocking, "f", Mode::Trace, Some(&first)).unwrap();
    let trace = apply(&blocking, &edits);
    assert_eq!(read(&trace).unwrap().env("CUDA_LAUNCH_BLOCKING"), None);
    assert_eq!(read(&trace).unwrap().mode(), Some(Mode::Trace));
    assert_eq!(apply(&trace, &switch_back(&trace, &second).unwrap()), TRAIN);
}

#[test]
fn the_strict_reader_refuses_what_pycharm_would_not_write() {
    assert_eq!(strictly(TRAIN).unwrap().env("DATA"), Some("a & \"b\""));
    let check = |old: &str, new: &str, expected: &str| {
        let text = TRAIN.replace(old, new);
        assert_ne!(text, TRAIN);
        assert_eq!(strictly(&text).unwrap_err().to_string(), expected);
    };
    check(
        "MODULE_MODE\" value=\"false",
        "MODULE_MODE\" value=\"no",
        "line 25, column 5: the option MODULE_MODE is true or false, not `no`",
    );
    check(
        "<option name=\"SDK_HOME\"",
        "<option name=\"CUBLAME\" value=\"1\" />\n    <option name=\"SDK_HOME\"",
        "line 11, column 5: `CUBLAME` is not known to PyCharm",
    );
    check(
        "    <module name=\"proj\" />\n    <option name=\"ENV_FILES\" value=\"\" />",
        "    <option name=\"ENV_FILES\" value=\"\" />\n    <module name=\"proj\" />",
        "line 4, column 5: `module` stands in the wrong place, or twice",
    );
    check("<method v=\"2\" />", "<method />", "line 28, column 5: `method` has v=\"2\"");
    check("<env name=\"DATA\"", "<env name=\"\"", "line 7, column 5: an `env` has a name and a value");
    check("PARAMETERS", "PARAMETER", "line 2, column 3: the option PARAMETERS is missing");
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let check = |text: &str, expected: &str| assert_eq!(copy(text, Mode::Off).unwrap_err().to_string(), expected);
    check("<a>\n  <b></a>", "line 2, column 6: this is not valid XML: expected 'b' tag, not 'a' at 2:6");
    check(
        "<project version=\"4\" />",
        "line 1, column 1: this is not a shared run configuration (component ProjectRunConfigurationManager)",
    );
    check("<component name=\"ProjectRunConfigurationManager\"/>", "line 1, column 1: the file holds no configuration");
    check("", "line 1, column 1: this is not valid XML: the document does not have a root node");
}

#[test]
fn a_record_can_put_back_a_value_and_nothing_else() {
    let (edits, record) = switch(TRAIN, "f", Mode::Blocking, None).unwrap();
    let switched = apply(TRAIN, &edits);
    let hostile = [
        ("CUBLAME_MODE", "\" /><env name=\"PYTHONSTARTUP\" value=\"/tmp/evil.py"),
        ("CUDA_LAUNCH_BLOCKING", "<"),
        (WHOLE, "<envs /><option name=\"SCRIPT_NAME\" value=\"/tmp/evil.py\" />"),
    ];
    for (name, source) in hostile {
        let mut record = record.clone();
        record.before.insert(name.to_owned(), Some(source.to_owned()));
        // With nothing but ours in the block, the whole of it is put back.
        let text = switched.replace("PYTHONUNBUFFERED", "CUBLAME_MODE").replace("DATA", "CUBLAME_MODE");
        let text = if name == WHOLE { text } else { switched.clone() };
        assert!(switch_back(&text, &record).is_err(), "{name}");
    }
}
