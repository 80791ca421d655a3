--- nvim-dap through `cublame dap`, which stands before debugpy's adapter and blames what goes by.
local M = {}

--- Adds the adapter `cublame`, and a configuration for the current file to those that nvim-dap offers.
function M.register()
  local dap = require('dap')
  if dap.adapters.cublame then return end
  dap.adapters.cublame = M.adapter
  dap.configurations.python = dap.configurations.python or {}
  table.insert(dap.configurations.python, M.configuration('${file}', nil))
end

--- Starts the debugger on a program.
---@param path string
---@param arguments string[]
function M.debug(path, arguments)
  local there, dap = pcall(require, 'dap')
  if not there then
    return vim.notify('cublame: debugging needs the plugin nvim-dap, which was not found.', vim.log.levels.ERROR)
  end
  M.register()
  dap.run(M.configuration(path, arguments))
end

--- The program is looked for at each session: the workspace may be another one by then.
--- The interpreter is that of the configuration, else that of the server's settings; else `cublame dap` looks for one.
---@param give fun(adapter: table)
---@param configuration table
function M.adapter(give, configuration)
  local found = require('cublame.program').find(configuration.cwd)
  if not found.path then return vim.notify('cublame: ' .. found.why, vim.log.levels.ERROR) end
  local python = configuration.python or vim.tbl_get(vim.lsp.config.cublame, 'settings', 'cublame', 'python')
  local arguments = type(python) == 'string' and { 'dap', '--python', python } or { 'dap' }
  give({ type = 'executable', command = found.path, args = arguments, options = { cwd = configuration.cwd } })
end

---@param path string
---@param arguments? string[]
function M.configuration(path, arguments)
  return {
    type = 'cublame',
    request = 'launch',
    name = 'cublame: ' .. (path == '${file}' and 'current file' or vim.fs.basename(path)),
    program = path,
    args = arguments,
    cwd = path == '${file}' and '${fileDirname}' or require('cublame.project').root(path) or vim.fs.dirname(path),
    console = 'integratedTerminal',
  }
end

return M
