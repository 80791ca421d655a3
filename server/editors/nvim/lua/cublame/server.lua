--- The configuration of the server, as `lsp/cublame.lua` hands it to Neovim.
local M = {}

--- Files of these types are the server's only where they hold run configurations.
local RUN_CONFIGURATIONS = {
  json = { '/%.vscode/launch%.json$', '%.code%-workspace$', '%.ipynb$' },
  jsonc = { '/%.vscode/launch%.json$', '%.code%-workspace$' },
  xml = { '%.run%.xml$', '/%.idea/runConfigurations/[^/]+%.xml$' },
}

local LANGUAGE_IDS = { cuda = 'cuda-cpp' }

local told = {}

local function root_dir(buffer, start)
  local file = vim.api.nvim_buf_get_name(buffer)
  local patterns = RUN_CONFIGURATIONS[vim.bo[buffer].filetype]
  local matches = function(pattern) return file:find(pattern) end
  if file == '' or (patterns and not vim.iter(patterns):any(matches)) then return end
  local root = require('cublame.project').root(buffer) or vim.fs.dirname(file)
  local found = require('cublame.program').find(root)
  if found.path then
    start(root)
  elseif not told[found.why] then
    told[found.why] = true
    vim.notify('cublame: ' .. found.why .. ' :checkhealth cublame says more.', vim.log.levels.WARN)
  end
end

local function command(dispatchers, config)
  -- The file that was opened decided already that there is one.
  local found = require('cublame.program').find(config and config.root_dir)
  return vim.lsp.rpc.start({ assert(found.path, found.why), 'lsp' }, dispatchers)
end

local function before_init(params)
  local custom = { 'cublame/runs', 'cublame/report' }
  if require('cublame').options.run_in == 'terminal' then table.insert(custom, 'cublame/runInTerminal') end
  params.initializationOptions = vim.tbl_extend('force', params.initializationOptions or {}, { custom = custom })
  params.locale = params.locale or vim.v.lang:match('^%a%a_?%a*')
end

M.config = {
  cmd = command,
  filetypes = { 'python', 'cuda', 'cpp', 'c', 'json', 'jsonc', 'xml' },
  root_dir = root_dir,
  get_language_id = function(_, filetype) return LANGUAGE_IDS[filetype] or filetype end,
  before_init = before_init,
  handlers = {
    ['cublame/runs'] = function(_, params, context) require('cublame.runs').set(context.client_id, params.runs) end,
    ['cublame/report'] = function(_, params) require('cublame.windows').show_page(vim.uri_to_fname(params.uri)) end,
    ['cublame/runInTerminal'] = function(_, params) require('cublame.windows').run(params.argv, params.cwd) end,
  },
  commands = {
    -- Its answer is the report, which only an editor can put on the clipboard.
    ['cublame.copyReport'] = function(given, context)
      local client = assert(vim.lsp.get_client_by_id(context.client_id))
      require('cublame.commands').copy_report(client, given.arguments)
    end,
  },
  on_exit = function(_, _, client_id) require('cublame.runs').forget(client_id) end,
}

return M
