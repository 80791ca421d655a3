use crate::config::Edit;
use crate::lint::launches::{after_calls, blanked, launches};
use crate::lint::rule::{Rule, Severity};
use crate::lint::{FileKind, Finding, Input};

pub const RULE: Rule = Rule {
    name: "launch-unchecked",
    severity: Severity::Warning,
    what: "A kernel launch `<<<...>>>` without a check behind it.",
    why: "A launch returns nothing. A wrong grid, too many threads or a missing kernel image then surface at some later, innocent \
          call, and even CUDA_LAUNCH_BLOCKING=1 names that one.",
    example: "void run(float* x) {\n    kernel<<<1, 4096>>>(x);\n}",
    fix: "In a PyTorch extension `C10_CUDA_KERNEL_LAUNCH_CHECK();`, else a look at `cudaGetLastError()` after the launch.",
    quiet: "Where anything later in the function, or in a function of the file that calls it, checks or synchronises, and inside \
            macros.",
    check,
};

/// Words that say that somebody looks for an error.
const CHECKS: &[&str] =
    &["check", "getlasterror", "peekatlasterror", "synchronize", "err", "safe_call", "assert", "status"];

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    if input.file.kind != FileKind::Cuda {
        return Vec::new();
    }
    let text = &input.file.text;
    let code = blanked(text);
    let lower = code.to_ascii_lowercase();
    let checks = |text: &str| CHECKS.iter().any(|word| text.contains(word));
    let for_torch = ["torch/", "ATen/", "c10/"].iter().any(|header| text.contains(&format!("#include <{header}")));
    let mut found = Vec::new();
    for launch in launches(text) {
        // The macro around a launch may check it, and so may whoever calls a function that only launches.
        let by_caller = launch
            .function
            .as_deref()
            .is_some_and(|function| after_calls(&code, function).iter().any(|rest| checks(&rest.to_ascii_lowercase())));
        if checks(&lower[launch.rest.clone()]) || by_caller {
            continue;
        }
        // A statement before an `else` would part it from its `if`.
        let before_else = code[launch.after..].trim_start().starts_with("else");
        let edit = if for_torch { with_check(text, launch.after) } else { with_report(text, launch.after) };
        let message = "nothing checks this launch: if it fails, some later call is blamed";
        found.push(RULE.finding(launch.range, message).with_fix("Check the launch", (!before_else).then_some(edit)));
    }
    found
}

/// With PyTorch's own macro, which throws.
fn with_check(text: &str, after: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    let header = "#include <c10/cuda/CUDAException.h>";
    let has_header =
        text.contains(header) || text.contains("ATen/cuda/CUDAContext.h") || text.contains("ATen/cuda/Exceptions.h");
    if !has_header && let Some(first) = text.find("#include") {
        edits.push(Edit::insert(first, format!("{header}\n")));
    }
    edits.push(behind(text, after, &["C10_CUDA_KERNEL_LAUNCH_CHECK();"]));
    edits
}

/// Without a library: the error is printed with its line.
fn with_report(text: &str, after: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    if !text.contains("<cstdio>") && !text.contains("<stdio.h>") {
        let first = text.match_indices("#include").map(|(at, _)| at).find(|at| text[..*at].ends_with('\n') || *at == 0);
        edits.push(Edit::insert(first.unwrap_or(0), "#include <cstdio>\n"));
    }
    edits.push(behind(
        text,
        after,
        &[
            "if (cudaPeekAtLastError() != cudaSuccess)",
            "    fprintf(stderr, \"%s:%d: %s\\n\", __FILE__, __LINE__, cudaGetErrorString(cudaGetLastError()));",
        ],
    ));
    edits
}

/// Lines behind a launch, with its indentation; on its own line where something else follows there.
fn behind(text: &str, after: usize, lines: &[&str]) -> Edit {
    let line_start = text[..after].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[line_start..];
    let indentation = &line[..line.len() - line.trim_start().len()];
    let line_end = text[after..].find('\n').map_or(text.len(), |at| after + at);
    let alone = text[after..line_end].trim().is_empty();
    let separator = if alone { format!("\n{indentation}") } else { " ".to_owned() };
    let lines: Vec<&str> = if alone { lines.to_vec() } else { lines.iter().map(|line| line.trim_start()).collect() };
    Edit::insert(after, lines.iter().map(|line| format!("{separator}{line}")).collect::<String>())
}
