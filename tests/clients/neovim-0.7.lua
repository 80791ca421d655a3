-- Neovim 0.7: the oldest client of a stable distribution. It has no `-l`, no vim.lsp.start, and keeps no `data`.
local harness = dofile(vim.env.HERE .. '/harness.lua')
local test, wait_for, equal, project = harness.test, harness.wait_for, harness.equal, harness.project
local cublame, fault = vim.env.CUBLAME, harness.fault()

test('the plugin says that it is too old, and does nothing else', function()
  vim.cmd('source ' .. vim.fn.fnameescape(vim.env.EDITORS .. '/nvim/plugin/cublame.lua'))
  harness.contains(vim.fn.execute('Cublame run'), 'this plugin needs Neovim 0.11')
end)

local buffer = harness.open('train.py')
local id = vim.lsp.start_client({ name = 'cublame', cmd = { cublame, 'lsp' }, root_dir = project })
vim.lsp.buf_attach_client(buffer, id)
local client = wait_for('the server', function()
  local client = vim.lsp.get_client_by_id(id)
  return client and client.initialized and client
end)

local function diagnostics() return vim.diagnostic.get(buffer) end

local function order(command) return client.request_sync('workspace/executeCommand', command, 5000, buffer) end

test('a run in a terminal is shown at its line', function()
  local done
  vim.fn.jobstart({ cublame, 'run', '--mode', 'off', '--', 'python3', 'train.py' },
    { cwd = project, on_exit = function() done = true end })
  wait_for('the end of the run', function() return done end)
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  local first = diagnostics()[1]
  equal({ first.lnum + 1, first.source }, { fault, 'cublame' })
end)

test('what is dismissed is gone', function()
  vim.api.nvim_win_set_cursor(0, { fault, 0 })
  local params = vim.lsp.util.make_range_params()
  params.context = { diagnostics = {} }
  local actions = vim.lsp.buf_request_sync(buffer, 'textDocument/codeAction', params, 5000)[id].result
  local dismiss = vim.tbl_filter(function(action) return action.title == 'Dismiss' end, actions)[1]
  assert(dismiss, vim.inspect(actions))
  order({ command = dismiss.command.command, arguments = dismiss.command.arguments })
  wait_for('the end of the diagnostic', function() return #diagnostics() == 0 end)
end)

test('a run is started and stopped', function()
  order({ command = 'cublame.run', arguments = { { uri = vim.uri_from_fname(project .. '/wait.py') } } })
  wait_for('the run', function() return harness.read('started') end)
  local stopped = wait_for('a run to stop', function()
    local answer = order({ command = 'cublame.stop' })
    return answer and answer.result and answer.result.run
  end)
  wait_for('its report', function() return harness.read('.cublame/runs/' .. stopped .. '/report.json') end)
end)

test('the server leaves when it is told to', function()
  vim.lsp.stop_client(id)
  wait_for('its end', function() return vim.lsp.client_is_stopped(id) end)
end)

harness.all_passed()
