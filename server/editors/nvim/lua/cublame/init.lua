--- cublame in Neovim. The plugin finds and starts the server, forwards, and shows; what is true is the server's to say.
local M = {}

---@class cublame.Options
---@field path? string The program, absolute. Without it: the first on $PATH that is not inside the workspace.
---@field run_in? 'terminal'|'background' Where `:Cublame run` runs; a background run shows itself as progress.
---@field settings? table The server's settings, such as `{ mode = 'blocking', lint = { ignore = { 'dsa-env' } } }`.

---@type cublame.Options
M.options = { run_in = 'terminal' }

--- Takes the options and enables the server for every buffer that it is for.
---@param options? cublame.Options
function M.setup(options)
  options = options or {}
  vim.validate('path', options.path, 'string', true)
  local is_place = function(where) return where == 'terminal' or where == 'background' end
  vim.validate('run_in', options.run_in, is_place, true, "'terminal' or 'background'")
  vim.validate('settings', options.settings, 'table', true)
  M.options = vim.tbl_extend('force', M.options, options)
  if options.settings then vim.lsp.config('cublame', { settings = { cublame = options.settings } }) end
  vim.lsp.enable('cublame')
  if package.loaded.dap then require('cublame.dap').register() end
end

--- For a status line: `CUDA: trace`, `CUDA: trace, running`, `CUDA: blocking, 1 failed`. Empty where no server is attached.
--- `User CublameChanged` says when it may have changed.
---@return string
function M.statusline()
  local client = vim.lsp.get_clients({ name = 'cublame', bufnr = 0 })[1]
  if not client then return '' end
  return require('cublame.runs').summary(require('cublame.mode').of(client), client.id)
end

return M
