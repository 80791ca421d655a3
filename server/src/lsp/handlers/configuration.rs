//! Settings: `workspace/didChangeConfiguration`, and asking for them where the client can be asked.

use std::time::Duration;

use serde_json::Value;
use tower_lsp::ls_types::{ConfigurationItem, DidChangeConfigurationParams, Registration};

use super::super::backend::Backend;
use super::super::editor::detached;
use super::super::settings::{self, SECTION, Settings};
use crate::world::{self, Event, Handle};

const ANSWER: Duration = Duration::from_secs(10);

/// After `initialized`: has the client say when settings change, and asks for them.
pub fn ask(backend: &Backend) {
    let features = backend.features();
    if features.settings_registration {
        let client = backend.client.clone();
        let method = "workspace/didChangeConfiguration".to_owned();
        let options = Some(serde_json::json!({ "section": SECTION }));
        let registration = Registration { id: method.clone(), method, register_options: options };
        detached(ANSWER, async move { client.register_capability(vec![registration]).await });
    }
    if features.pull_settings {
        pull(backend);
    }
}

/// A client that pushes its settings puts them into the notification; one that is asked may put nothing there.
pub fn changed(backend: &Backend, params: &DidChangeConfigurationParams) {
    if backend.features().pull_settings {
        pull(backend);
    } else {
        apply(backend, settings::of_notification(&params.settings, locale(backend)));
    }
}

pub fn apply(backend: &Backend, settings: Settings) {
    post(&backend.world, settings);
}

fn pull(backend: &Backend) {
    let (client, world) = (backend.client.clone(), backend.world.clone());
    let locale = locale(backend).map(str::to_owned);
    let item = ConfigurationItem { scope_uri: None, section: Some(SECTION.to_owned()) };
    detached(ANSWER, async move {
        if let Ok(mut values) = client.configuration(vec![item]).await
            && let Some(value @ Value::Object(_)) = values.pop()
        {
            post(&world, settings::of_section(Some(&value), locale.as_deref()));
        }
    });
}

fn post(world: &Handle, settings: Settings) {
    let Settings {
        mode,
        python,
        path_mappings,
        lint_select,
        lint_ignore,
        hang_seconds,
        language,
        no_inlay_hints,
        complaints,
    } = settings;
    let settings = world::Settings {
        mode,
        python,
        path_mappings,
        lint_select,
        lint_ignore,
        hang_seconds,
        language,
        no_inlay_hints,
    };
    world.post(Event::Settings(settings, complaints));
}

fn locale(backend: &Backend) -> Option<&str> {
    backend.locale.get().and_then(Option::as_deref)
}
