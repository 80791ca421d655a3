//! The modules at hand, and which further ones would help.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ruff_python_ast::{Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};

use super::table::Table;
use super::value::{ClassRef, Scope};
use super::{Module, libraries};

/// Steps that one question may take before the rest of it is unknown: a bound on time, whatever the code looks like.
const BUDGET: u32 = 400_000;

/// Some parsed modules and what was learnt of them. Everything in it lives as long as the modules.
pub struct Program<'a> {
    modules: &'a [Module],
    by_name: HashMap<&'a str, usize>,
    tables: RefCell<HashMap<usize, Rc<Table<'a>>>>,
    budget: Cell<u32>,
    /// Files that an import could mean and that were not asked for yet.
    wanted: RefCell<BTreeSet<String>>,
    asked: Box<dyn Fn(&str) -> bool + 'a>,
}

impl<'a> Program<'a> {
    /// `asked`: was this file looked for already, found or not?
    pub fn new(modules: &'a [Module], asked: impl Fn(&str) -> bool + 'a) -> Self {
        Self {
            modules,
            by_name: modules.iter().enumerate().map(|(index, module)| (module.name.as_str(), index)).collect(),
            tables: RefCell::default(),
            budget: Cell::new(BUDGET),
            wanted: RefCell::default(),
            asked: Box::new(asked),
        }
    }

    pub fn module(&self, index: usize) -> &'a Module {
        &self.modules[index]
    }

    pub fn modules(&self) -> &'a [Module] {
        self.modules
    }

    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub fn wanted(&self) -> Vec<String> {
        self.wanted.borrow().iter().cloned().collect()
    }

    /// A new question has a whole budget.
    pub fn refill(&self) {
        self.budget.set(BUDGET);
    }

    /// Takes one step of the budget; false when it is spent.
    pub fn step(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0
    }

    /// The names that a block binds, worked out once.
    pub fn table(&self, block: &'a [Stmt]) -> Rc<Table<'a>> {
        let key = block.as_ptr() as usize;
        if block.is_empty() {
            return Rc::default();
        }
        if let Some(table) = self.tables.borrow().get(&key) {
            return Rc::clone(table);
        }
        let table = Rc::new(Table::of(block));
        self.tables.borrow_mut().insert(key, Rc::clone(&table));
        table
    }

    pub fn module_scope(&self, module: usize) -> Scope<'a> {
        Scope::of_module(module, self.table(self.module(module).body()))
    }

    /// The module that an import in `from` means, if its source is here; if not, the files it could be are wanted.
    pub fn imported(&self, from: usize, level: u32, dotted: &str) -> Option<usize> {
        if level == 0 && !libraries::may_be_users(dotted) {
            return None;
        }
        let mut missing = Vec::new();
        for candidate in candidates(&self.module(from).name, level, dotted) {
            match self.index_of(&candidate) {
                Some(index) => return Some(index),
                None if !(self.asked)(&candidate) => missing.push(candidate),
                None => {}
            }
        }
        self.wanted.borrow_mut().extend(missing);
        None
    }

    /// The functions and classes that enclose an offset, outermost first, as the scope of the innermost.
    pub fn scope_at(&self, module: usize, offset: TextSize) -> Scope<'a> {
        let mut scope = self.module_scope(module);
        let mut block = self.module(module).body();
        let mut class: Option<ClassRef<'a>> = None;
        'inner: loop {
            let mut found: Option<&'a Stmt> = None;
            super::tree::each_statement(block, &mut |stmt| {
                let header_end = match stmt {
                    Stmt::FunctionDef(def) => def.name.start(),
                    Stmt::ClassDef(def) => def.name.start(),
                    _ => return,
                };
                if found.is_none() && header_end <= offset && offset <= stmt.end() {
                    found = Some(stmt);
                }
            });
            match found {
                Some(Stmt::FunctionDef(def)) => {
                    scope = Scope::of_function(self, def, &scope, class.take());
                    block = &def.body;
                }
                Some(Stmt::ClassDef(def)) => {
                    class = Some(ClassRef { def, scope: scope.clone() });
                    block = &def.body;
                }
                _ => break 'inner,
            }
        }
        scope
    }

    /// Every function of the modules, with its scope, in source order.
    pub fn functions(&self, module: usize) -> Vec<(&'a StmtFunctionDef, Scope<'a>)> {
        let mut found = Vec::new();
        let scope = self.module_scope(module);
        self.collect_functions(self.module(module).body(), &scope, None, 0, &mut found);
        found
    }

    fn collect_functions(
        &self,
        block: &'a [Stmt],
        scope: &Scope<'a>,
        class: Option<&ClassRef<'a>>,
        depth: u32,
        found: &mut Vec<(&'a StmtFunctionDef, Scope<'a>)>,
    ) {
        if depth > 12 {
            return;
        }
        let mut here: Vec<&'a Stmt> = Vec::new();
        super::tree::each_statement(block, &mut |stmt| here.push(stmt));
        for stmt in here {
            match stmt {
                Stmt::FunctionDef(def) => {
                    let inner = Scope::of_function(self, def, scope, class.cloned());
                    found.push((def, inner.clone()));
                    self.collect_functions(&def.body, &inner, None, depth + 1, found);
                }
                Stmt::ClassDef(def) => {
                    let class = ClassRef { def, scope: scope.clone() };
                    self.collect_functions(&def.body, scope, Some(&class), depth + 1, found);
                }
                _ => {}
            }
        }
    }
}

/// The files that `import dotted` (or `from ..dotted import`) in a file could mean, best first: beside the importing
/// file, then beside the folders above it, which are where a program is usually started.
pub fn candidates(importer: &str, level: u32, dotted: &str) -> Vec<String> {
    let slash = if importer.contains('\\') && !importer.contains('/') { '\\' } else { '/' };
    let mut folder = importer.rfind(slash).map_or("", |at| &importer[..=at]);
    for _ in 1..level {
        folder = parent(folder, slash);
    }
    let relative = dotted.replace('.', &slash.to_string());
    let mut names = Vec::new();
    let heights = if level == 0 { 4 } else { 1 };
    for _ in 0..heights {
        if relative.is_empty() {
            names.push(format!("{folder}__init__.py"));
        } else {
            names.push(format!("{folder}{relative}.py"));
            names.push(format!("{folder}{relative}{slash}__init__.py"));
        }
        let above = parent(folder, slash);
        if above == folder || above.len() <= 1 {
            break;
        }
        folder = above;
    }
    names
}

/// The folder above one that ends with its slash; itself where there is none.
fn parent(folder: &str, slash: char) -> &str {
    let Some(inner) = folder.strip_suffix(slash) else { return folder };
    inner.rfind(slash).map_or("", |at| &inner[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_looked_for_beside_and_above_the_importing_file() {
        let all = |importer, level, dotted| candidates(importer, level, dotted).join(" ");
        assert_eq!(all("train.py", 0, "model"), "model.py model/__init__.py");
        assert_eq!(
            all("/home/dev/proj/tools/train.py", 0, "models.net"),
            "/home/dev/proj/tools/models/net.py /home/dev/proj/tools/models/net/__init__.py \
             /home/dev/proj/models/net.py /home/dev/proj/models/net/__init__.py \
             /home/dev/models/net.py /home/dev/models/net/__init__.py \
             /home/models/net.py /home/models/net/__init__.py"
        );
        assert_eq!(all("src/pkg/a.py", 1, "b"), "src/pkg/b.py src/pkg/b/__init__.py");
        assert_eq!(all("src/pkg/a.py", 2, ""), "src/__init__.py");
        assert_eq!(
            all("C:\\proj\\train.py", 0, "net"),
            "C:\\proj\\net.py C:\\proj\\net\\__init__.py C:\\net.py C:\\net\\__init__.py"
        );
        assert_eq!(all("Cell In[3]", 0, "net"), "net.py net/__init__.py");
    }
}
