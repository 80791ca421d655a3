-- Neovim 0.11 as a plain client, with what it has of itself (vim.lsp.config, vim.lsp.enable, vim.lsp.buf.code_action).
local harness = dofile(vim.env.HERE .. '/harness.lua')
local test, wait_for, equal, project = harness.test, harness.wait_for, harness.equal, harness.project
local cublame, fault = vim.env.CUBLAME, harness.fault()

-- The user's answer to a question of the server: its first choice.
local asked
vim.lsp.handlers['window/showMessageRequest'] = function(_, request)
  asked = request.message
  return request.actions[1]
end

vim.lsp.config('cublame', { cmd = { cublame, 'lsp' }, filetypes = { 'python' }, root_dir = project })
vim.lsp.enable('cublame')
local buffer = harness.open('train.py')
local client = wait_for('the server', function() return vim.lsp.get_clients({ bufnr = buffer })[1] end)

local function diagnostics() return vim.diagnostic.get(buffer) end

local function apply(title)
  vim.api.nvim_win_set_cursor(0, { fault, 0 })
  vim.lsp.buf.code_action({ filter = function(action) return action.title == title end, apply = true })
end

test('a run in a terminal is shown at its line', function()
  -- The editor has no part in it.
  vim.system({ cublame, 'run', '--mode', 'off', '--', 'python3', 'train.py' }, { cwd = project }):wait()
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  local first = diagnostics()[1]
  equal({ first.lnum + 1, first.source, first.code }, { fault, 'cublame', 'device-assert' })
end)

test('hover has the verdict', function()
  vim.api.nvim_win_set_cursor(0, { fault, 4 })
  local position = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local hover = client:request_sync('textDocument/hover', position, 5000, buffer)
  harness.contains(hover.result.contents.value, 'device-side assert')
end)

test('a run is made again in another mode, after a question', function()
  local run = diagnostics()[1].user_data.lsp.data.run
  apply('Rerun with blocking launches')
  wait_for('the question', function() return asked end)
  harness.contains(asked, 'mode blocking')
  harness.contains(asked, 'train.py')
  local data = wait_for('the diagnostic of the rerun', function()
    local now = diagnostics()[1]
    return now and now.user_data.lsp.data.run ~= run and now.user_data.lsp.data
  end)
  equal(data.mode, 'blocking')
end)

test('what is dismissed is gone', function()
  apply('Dismiss')
  wait_for('the end of the diagnostic', function() return #diagnostics() == 0 end)
end)

test('a run is started and stopped', function()
  client:exec_cmd({ title = 'run', command = 'cublame.run', arguments = { { uri = vim.uri_from_fname(project .. '/wait.py') } } })
  wait_for('the run', function() return harness.read('started') end)
  local stopped = wait_for('a run to stop', function()
    local answer = client:request_sync('workspace/executeCommand', { command = 'cublame.stop' }, 5000, buffer)
    return answer and answer.result and answer.result.run
  end)
  wait_for('its report', function() return harness.read('.cublame/runs/' .. stopped .. '/report.json') end)
end)

harness.all_passed()
