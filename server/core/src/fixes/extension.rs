//! An extension that was compiled for other GPUs than the one it ran on.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::edits;
use crate::python::tree;

use super::Draft;
use super::spot::{Spot, line_start};

/// TORCH_CUDA_ARCH_LIST from the GPU that is there, before the file compiles an extension.
///
/// A list that is written out is what went wrong, so it is replaced; without one the variable is set where it is not.
pub fn architectures(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let code = spot.code;
    let (torch, torch_import) = edits::imported(code, "torch");
    let of_this_gpu = format!("\"{{}}.{{}}\".format(*{torch}.cuda.get_device_capability())");
    let written = code.sites.iter().find_map(|site| {
        let Stmt::Assign(assign) = site.stmt else { return None };
        let [Expr::Subscript(target)] = &assign.targets[..] else { return None };
        let is_list = tree::string(&target.slice) == Some("TORCH_CUDA_ARCH_LIST");
        (is_list && tree::string(&assign.value).is_some()).then_some(&assign.value)
    });
    if let Some(value) = written {
        let range = tree::byte_range(value.range());
        let edit = Edit::replace(range.start, range.end, of_this_gpu);
        return vec![Draft::new("architecture-list", torch_import.into_iter().chain([edit]).collect())];
    }
    if code.text().contains("TORCH_CUDA_ARCH_LIST") {
        return Vec::new();
    }
    let compiling = code.calls.iter().find_map(|(index, call)| {
        let site = &code.sites[*index];
        let path = code.path(&call.func, site)?;
        let compiles = matches!(
            path.as_str(),
            "torch.utils.cpp_extension.load"
                | "torch.utils.cpp_extension.load_inline"
                | "torch.utils.cpp_extension.CUDAExtension"
        );
        compiles.then_some(site)
    });
    let Some((at, indentation)) = compiling.and_then(|site| line_start(code, site.stmt)) else { return Vec::new() };
    let (os, os_import) = edits::imported(code, "os");
    let newline = edits::line_end(code.text());
    let line = format!("{indentation}{os}.environ[\"TORCH_CUDA_ARCH_LIST\"] = {of_this_gpu}{newline}");
    let imports = os_import.into_iter().chain(torch_import);
    vec![Draft::new("architecture-list", imports.chain([Edit::insert(at, line)]).collect())]
}
