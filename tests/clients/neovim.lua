-- Neovim 0.11: the client of today (vim.lsp.config, vim.lsp.enable, vim.lsp.buf.code_action).
local cublame, project = vim.env.CUBLAME, vim.env.PROJECT

local function fault_line()
  for number, line in ipairs(vim.fn.readfile(project .. '/train.py')) do
    if line:match('# @fault$') then return number end
  end
end

local function wait_for(what, condition)
  assert(vim.wait(20000, condition, 20), what .. ' did not come')
end

-- As from a terminal: the editor has no part in it.
local function run_in_a_terminal(program)
  vim.system({ cublame, 'run', '--mode', 'off', '--', 'python3', program }, { cwd = project }):wait()
end

local function main()
  -- The user's answer to a question of the server: its first choice.
  local asked
  vim.lsp.handlers['window/showMessageRequest'] = function(_, request)
    asked = request.message
    return request.actions[1]
  end
  vim.lsp.config('cublame', { cmd = { cublame, 'lsp' }, filetypes = { 'python' }, root_dir = project })
  vim.lsp.enable('cublame')
  vim.cmd.edit(vim.fn.fnameescape(project .. '/train.py'))
  vim.bo.filetype = 'python'
  local buffer = vim.api.nvim_get_current_buf()
  wait_for('the server', function() return #vim.lsp.get_clients({ bufnr = buffer }) == 1 end)
  local client = vim.lsp.get_clients({ bufnr = buffer })[1]
  wait_for('its answer to initialize', function() return client.initialized end)

  local function diagnostics() return vim.diagnostic.get(buffer) end
  run_in_a_terminal('train.py')
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  local first = diagnostics()[1]
  assert(first.lnum + 1 == fault_line() and first.source == 'cublame' and first.code == 'device-assert', vim.inspect(first))

  local function apply(title)
    vim.api.nvim_win_set_cursor(0, { first.lnum + 1, first.col })
    vim.lsp.buf.code_action({ filter = function(action) return action.title == title end, apply = true })
  end
  apply('Rerun with blocking launches')
  wait_for('the question', function() return asked ~= nil end)
  assert(asked:match('mode blocking') and asked:match('train.py'), asked)
  local run = first.user_data.lsp.data.run
  wait_for('the diagnostic of the rerun', function()
    local now = diagnostics()[1]
    return now and now.user_data.lsp.data.run ~= run
  end)
  assert(diagnostics()[1].user_data.lsp.data.mode == 'blocking', vim.inspect(diagnostics()))

  local hover = client:request_sync('textDocument/hover', vim.lsp.util.make_position_params(0, client.offset_encoding), 5000, buffer)
  assert(hover.result.contents.value:match('device'), vim.inspect(hover))

  apply('Dismiss')
  wait_for('the end of the diagnostic', function() return #diagnostics() == 0 end)

  client:exec_cmd({ title = 'run', command = 'cublame.run', arguments = { { uri = vim.uri_from_fname(project .. '/wait.py') } } })
  wait_for('the run', function() return vim.uv.fs_stat(project .. '/started') ~= nil end)
  local stopped
  wait_for('a run to stop', function()
    local answer = client:request_sync('workspace/executeCommand', { command = 'cublame.stop' }, 5000, buffer)
    stopped = answer and answer.result and answer.result.run
    return stopped ~= nil
  end)
  wait_for('its report', function() return vim.uv.fs_stat(project .. '/.cublame/runs/' .. stopped .. '/report.json') ~= nil end)
end

local ok, failure = pcall(main)
io.stdout:write((ok and 'passed' or ('FAILED ' .. tostring(failure))) .. '\n')
vim.cmd(ok and 'qall!' or 'cquit 1')
