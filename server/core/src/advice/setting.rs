//! The settings of PyTorch's allocator that an advice can put into a run configuration. The set is closed.

use crate::verdict::Advice;

/// A variable with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub variable: &'static str,
    pub value: &'static str,
}

/// The name before PyTorch 2.9, the one since, and ROCm's.
const VARIABLES: [&str; 3] = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"];
const VALUES: [&str; 2] = ["expandable_segments:True", "max_split_size_mb:128"];

impl Setting {
    /// None for anything that is no such setting.
    pub fn of_words(variable: &str, value: &str) -> Option<Self> {
        let variable = VARIABLES.into_iter().find(|known| *known == variable)?;
        let value = VALUES.into_iter().find(|known| *known == value)?;
        Some(Self { variable, value })
    }

    /// What an advice says to set, read from its own command: `env PYTORCH_ALLOC_CONF=expandable_segments:True python ..`.
    pub fn of(advice: &Advice) -> Option<Self> {
        let assignment = advice.command.as_deref()?.strip_prefix("env ")?.split(' ').next()?;
        let (variable, value) = assignment.split_once('=')?;
        Self::of_words(variable, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_read_from_the_advice_that_gives_it() {
        let check = |command: &str, expected: Option<(&str, &str)>| {
            let advice = Advice {
                id: "use-expandable-segments".to_owned(),
                title: String::new(),
                detail: String::new(),
                command: Some(command.to_owned()),
                edit: None,
            };
            assert_eq!(Setting::of(&advice).map(|setting| (setting.variable, setting.value)), expected, "{command}");
        };
        let segments = Some(("PYTORCH_ALLOC_CONF", "expandable_segments:True"));
        check("env PYTORCH_ALLOC_CONF=expandable_segments:True python train.py", segments);
        check("env PYTORCH_ALLOC_CONF=backend:evil python train.py", None);
        check("env LD_PRELOAD=evil.so python train.py", None);
        check("nvidia-smi", None);
    }
}
