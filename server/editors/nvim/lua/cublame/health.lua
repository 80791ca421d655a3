--- `:checkhealth cublame`
local M = {}

function M.check()
  local health = vim.health
  health.start('cublame')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim is ' .. tostring(vim.version()))
  else
    health.error('Neovim 0.11 is needed', { 'The language server works with older ones: :help cublame-old' })
    return
  end
  M.program(health)
  M.server(health)
  M.debugger(health)
  health.info('Whether the GPU, its driver and the Python of the project go together: :Cublame doctor')
end

function M.program(health)
  local found = require('cublame.program').find(require('cublame.project').root(0) or vim.uv.cwd())
  for _, path in ipairs(found.refused) do
    health.warn(path .. ' is not used: it is inside the workspace', { 'If you trust it, name it with `path` in setup()' })
  end
  if not found.path then
    health.error(found.why, { 'Build it from the sources: cargo install --path server' })
    return
  end
  local answer = vim.system({ found.path, '--version' }, { text = true, timeout = 10000 }):wait()
  if answer.code == 0 and vim.startswith(answer.stdout, 'cublame ') then
    health.ok(('The program is %s (%s): %s'):format(found.path, vim.trim(answer.stdout), found.why))
  else
    health.error(found.path .. ' does not say that it is cublame', { 'Name the right one with `path` in setup()' })
  end
end

function M.server(health)
  local servers = vim.lsp.get_clients({ name = 'cublame' })
  for _, client in ipairs(servers) do
    health.ok(('A server runs for %s, in mode %s'):format(client.root_dir, require('cublame.mode').of(client)))
  end
  if servers[1] then return end
  if vim.lsp.is_enabled('cublame') then
    health.info('The server is enabled, and no file that it is for is open')
  else
    health.warn('The server is not enabled', { "Call require('cublame').setup() in your init.lua" })
  end
end

function M.debugger(health)
  if pcall(require, 'dap') then
    health.ok('nvim-dap is there: :Cublame debug')
  else
    health.info('nvim-dap is not there: :Cublame debug needs it, all else works without')
  end
end

return M
