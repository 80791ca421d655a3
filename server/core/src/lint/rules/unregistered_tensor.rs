use ruff_python_ast::{Expr, Stmt, StmtAssign};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::code::{Code, method};
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input};
use crate::python::tree;
use crate::python::value::{ClassRef, FunctionRef, Scope, Value};

pub const RULE: Rule = Rule {
    name: "unregistered-tensor",
    severity: Severity::Warning,
    what: "A tensor is a plain attribute of a module and is used in its forward pass.",
    why: "`module.cuda()` and `module.to(device)` move parameters and buffers only. The tensor stays on the CPU, and the first \
          forward pass on a GPU fails with `Expected all tensors to be on the same device`.",
    example: "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = torch.ones(8)\n\n    def forward(self, x):\n        return x * self.scale",
    fix: "`self.register_buffer(\"scale\", torch.ones(8), persistent=False)`",
    quiet: "Where the tensor is made on a device, moved anywhere in the class, assigned again, or only its shape or values are \
            read.",
    check,
};

const FACTORIES: &[&str] = &[
    "torch.tensor",
    "torch.zeros",
    "torch.ones",
    "torch.full",
    "torch.arange",
    "torch.linspace",
    "torch.eye",
    "torch.rand",
    "torch.randn",
    "torch.empty",
    "torch.logspace",
    "torch.FloatTensor",
    "torch.LongTensor",
];

/// Methods of a tensor that give a tensor on the same device.
const KEEP_DEVICE: &[&str] = &[
    "float",
    "long",
    "half",
    "double",
    "int",
    "view",
    "reshape",
    "unsqueeze",
    "squeeze",
    "t",
    "repeat",
    "expand",
    "flatten",
];

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let mut found = Vec::new();
    for class in &code.classes {
        let is_module = code.program.derives_from(class, &|base| base == "torch.nn.Module");
        let (Some(init), Some(forward)) = (method(class, "__init__"), method(class, "forward")) else { continue };
        let overrides = ["to", "cuda", "_apply", "__setattr__"].iter().any(|name| method(class, name).is_some());
        if !is_module || overrides {
            continue;
        }
        let function =
            FunctionRef { def: init, scope: class.scope.clone(), class: Some(class.clone()), receiver: None };
        let scope = Scope::of_call(code.program, &function, None);
        for stmt in &init.body {
            let Stmt::Assign(assign) = stmt else { continue };
            let Some(name) = own_attribute(assign) else { continue };
            if !is_cpu_tensor(code, &assign.value, &scope)
                || !is_operand(forward.body.as_slice(), name)
                || is_handled(code, class, name, assign)
            {
                continue;
            }
            let message = format!("`self.{name}` is no buffer: it stays on the CPU when the module is moved to a GPU");
            let value = code.source(assign.value.as_ref());
            let statement = tree::byte_range(assign.range());
            let edit = (!value.contains('\n')).then(|| {
                let call = format!("self.register_buffer(\"{name}\", {value}, persistent=False)");
                vec![Edit::replace(statement.start, statement.end, call)]
            });
            found.push(RULE.finding(statement, message).with_fix("Register it as a buffer", edit));
        }
    }
    found
}

/// `name` of `self.name = value`.
fn own_attribute(assign: &StmtAssign) -> Option<&str> {
    match &assign.targets[..] {
        [Expr::Attribute(target)] if is_self(&target.value) => Some(target.attr.as_str()),
        _ => None,
    }
}

fn is_self(expr: &Expr) -> bool {
    matches!(expr, Expr::Name(name) if name.id.as_str() == "self")
}

fn is_attribute(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Attribute(attribute) if attribute.attr.as_str() == name && is_self(&attribute.value))
}

fn is_cpu_tensor<'a>(code: &Code<'_, 'a>, value: &'a Expr, scope: &Scope<'a>) -> bool {
    let Expr::Call(call) = value else { return false };
    if let Expr::Attribute(attribute) = call.func.as_ref()
        && KEEP_DEVICE.contains(&attribute.attr.as_str())
        && attribute.value.is_call_expr()
    {
        return is_cpu_tensor(code, &attribute.value, scope);
    }
    let on_device = tree::keyword(call, "device").is_some() || call.arguments.keywords.iter().any(|k| k.arg.is_none());
    !on_device
        && matches!(code.program.value(&call.func, scope), Value::Path { path, .. } if FACTORIES.contains(&path.as_str()))
}

/// Is the attribute an operand of arithmetic in the forward pass?
fn is_operand(body: &[Stmt], name: &str) -> bool {
    let mut operand = false;
    tree::each_statement(body, &mut |stmt| {
        for expr in tree::own_expressions(stmt) {
            tree::each_expression(expr, &mut |expr| {
                if let Expr::BinOp(binary) = expr {
                    operand = operand || is_attribute(&binary.left, name) || is_attribute(&binary.right, name);
                }
            });
        }
    });
    operand
}

/// Is it moved, assigned again, or registered somewhere in the class?
fn is_handled(code: &Code<'_, '_>, class: &ClassRef<'_>, name: &str, first: &StmtAssign) -> bool {
    let mut handled = false;
    for member in &class.def.body {
        let Stmt::FunctionDef(def) = member else { continue };
        tree::each_statement(&def.body, &mut |stmt| {
            if let Stmt::Assign(assign) = stmt
                && assign.range() != first.range()
                && assign.targets.iter().any(|target| is_attribute(target, name))
            {
                handled = true;
            }
            for expr in tree::own_expressions(stmt) {
                tree::each_expression(expr, &mut |expr| match expr {
                    Expr::Attribute(attribute) if is_attribute(&attribute.value, name) => {
                        let moves = ["to", "cuda", "type_as", "device", "data", "copy_", "cpu"];
                        handled = handled || moves.contains(&attribute.attr.as_str());
                    }
                    Expr::Call(call) if tree::last_name(&call.func) == Some("register_buffer") => {
                        handled = handled || call.arguments.args.first().and_then(tree::string) == Some(name);
                    }
                    _ => {}
                });
            }
        });
    }
    // Outside of the class: `net.scale = net.scale.cuda()`.
    handled || code.text().contains(&format!(".{name}.to(")) || code.text().contains(&format!(".{name}.cuda("))
}
