--- The modes, and which one a workspace is in: `.cublame/mode` holds it in one word, for every front end.
local project = require('cublame.project')

local M = {}

--- The modes to choose from, the best default first: what each gives, and what it costs.
M.OFFERED = {
  { name = 'trace', gives = 'the failing line at full speed, from a journal of launches', costs = 'no slowdown measured' },
  { name = 'blocking', gives = 'CUDA_LAUNCH_BLOCKING=1: each launch is waited for', costs = 'up to twice the run time' },
  { name = 'guard', gives = 'a bad index or label is caught before the launch', costs = 'a short wait at each checked argument' },
  { name = 'core', gives = "trace, and the GPU's core dump as proof", costs = 'the process ends at the fault' },
  { name = 'sanitize', gives = "NVIDIA's compute-sanitizer: the bad access itself", costs = 'many times slower' },
  { name = 'off', gives = 'nothing is changed; judged by output and exception alone', costs = 'no cost' },
}

local DEFAULT = 'trace'
--- By the folder of the project. Read when a buffer or Neovim itself comes to the front, not at every redraw.
local cached = {}

--- The mode that a run of the client's workspace takes.
---@param client vim.lsp.Client
---@return string
function M.of(client)
  local folder = project.folder(client.root_dir or vim.uv.cwd())
  if cached[folder] == nil then cached[folder] = M.read(folder) or false end
  local setting = vim.tbl_get(client.settings or {}, 'cublame', 'mode')
  return cached[folder] or setting or DEFAULT
end

--- Has the server write it.
---@param client vim.lsp.Client
---@param mode string
---@param done fun(failure?: string)
function M.set(client, mode, done)
  local argument = { mode = mode, quiet = true, folder = vim.uri_from_fname(client.root_dir) }
  client:request('workspace/executeCommand', { command = 'cublame.setMode', arguments = { argument } }, function(failure)
    -- The server answers before the file is on disk.
    if not failure then cached[project.folder(client.root_dir)] = mode end
    M.changed()
    done(failure and failure.message)
  end)
end

function M.forget() cached = {} end

function M.changed()
  vim.api.nvim_exec_autocmds('User', { pattern = 'CublameChanged', modeline = false })
  vim.cmd.redrawstatus({ bang = true })
end

--- Only a plain file is read: opening a named pipe would wait for somebody to write to it.
---@param folder string
---@return string?
function M.read(folder)
  local file = vim.fs.joinpath(folder, 'mode')
  local stat = vim.uv.fs_lstat(file)
  if not stat or stat.type ~= 'file' then return nil end
  local handle = io.open(file)
  local text = handle and handle:read(4096)
  if handle then handle:close() end
  return text and text:match('^%s*(%l+)%s*$')
end

vim.api.nvim_create_autocmd({ 'BufEnter', 'FocusGained', 'VimResume' }, {
  group = vim.api.nvim_create_augroup('cublame.mode', {}),
  callback = M.forget,
  desc = 'cublame: the mode may have been written by another program',
})

return M
