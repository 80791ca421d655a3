//! Which language a file is in, by its name.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    Python,
    Dockerfile,
    Compose,
    Ci,
    Dotenv,
    Shell,
    LaunchJson,
    RunXml,
    /// CUDA or C++.
    Cuda,
}

impl FileKind {
    /// None: a file that no rule reads.
    pub fn of(path: &str) -> Option<FileKind> {
        let path = path.replace('\\', "/").to_ascii_lowercase();
        let name = path.rsplit('/').next().unwrap_or(&path);
        let folder = &path[..path.len() - name.len()];
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let yaml = ends(&[".yml", ".yaml"]);
        let in_folder = |wanted: &str| folder.ends_with(&format!("{wanted}/")) || folder == format!("{wanted}/");
        if ends(&[".py", ".pyw", ".pyi"]) {
            Some(FileKind::Python)
        } else if ends(&[".cu", ".cuh", ".cpp", ".cc", ".cxx"]) {
            Some(FileKind::Cuda)
        } else if name == "dockerfile"
            || name == "containerfile"
            || ends(&[".dockerfile"])
            || name.starts_with("dockerfile.")
        {
            Some(FileKind::Dockerfile)
        } else if yaml && (name.starts_with("docker-compose") || name.starts_with("compose")) {
            Some(FileKind::Compose)
        } else if yaml && (in_folder(".github/workflows") || in_folder(".circleci") || in_folder(".ci"))
            || matches!(name, ".gitlab-ci.yml" | "azure-pipelines.yml" | "bitbucket-pipelines.yml" | ".travis.yml")
        {
            Some(FileKind::Ci)
        } else if SHELL_PROFILES.contains(&name) || ends(&[".sh", ".bash", ".zsh", ".fish"]) {
            Some(FileKind::Shell)
        } else if name == ".env" || name.starts_with(".env.") || ends(&[".env"]) {
            Some(FileKind::Dotenv)
        } else if name == "launch.json" && in_folder(".vscode") {
            Some(FileKind::LaunchJson)
        } else if ends(&[".run.xml"]) || ends(&[".xml"]) && in_folder(".idea/runconfigurations") {
            Some(FileKind::RunXml)
        } else {
            None
        }
    }
}

const SHELL_PROFILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".envrc",
    ".bash_aliases",
];

/// Does a text hold a word that any rule is about? Most files of a project do not, and need not be parsed.
pub fn may_matter(text: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::new(["CUDA", "cuda", "torch", "<<<"]).ok());
    WORDS.as_ref().is_none_or(|words| words.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name() {
        let check = |path, kind| assert_eq!(FileKind::of(path), kind, "{path}");
        check("src/train.py", Some(FileKind::Python));
        check("a\\b\\Train.PY", Some(FileKind::Python));
        check("docker/Dockerfile.gpu", Some(FileKind::Dockerfile));
        check("docker-compose.override.yml", Some(FileKind::Compose));
        check(".github/workflows/ci.yml", Some(FileKind::Ci));
        check("proj/.gitlab-ci.yml", Some(FileKind::Ci));
        check("conf/model.yaml", None);
        check(".env.local", Some(FileKind::Dotenv));
        check("/home/dev/.bashrc", Some(FileKind::Shell));
        check("scripts/run.sh", Some(FileKind::Shell));
        check("proj/.vscode/launch.json", Some(FileKind::LaunchJson));
        check("launch.json", None);
        check(".run/train.run.xml", Some(FileKind::RunXml));
        check(".idea/runConfigurations/train.xml", Some(FileKind::RunXml));
        check("csrc/k.cu", Some(FileKind::Cuda));
        check("README.md", None);
    }
}
