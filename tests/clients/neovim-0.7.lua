-- Neovim 0.7: the oldest client of a stable distribution. It has no `-l`, no vim.lsp.start, and keeps no `data`.
local cublame, project = vim.env.CUBLAME, vim.env.PROJECT

local function fault_line()
  for number, line in ipairs(vim.fn.readfile(project .. '/train.py')) do
    if line:match('# @fault$') then return number end
  end
end

local function wait_for(what, condition)
  assert(vim.wait(20000, condition, 20), what .. ' did not come')
end

-- Too old for the plugin, which says so and does nothing else.
local function plugin()
  vim.cmd('source ' .. vim.fn.fnameescape(vim.env.EDITORS .. '/nvim/plugin/cublame.lua'))
  local said = vim.fn.execute('Cublame run')
  assert(said:match('this plugin needs Neovim 0.11'), said)
end

local function main()
  plugin()
  vim.cmd('edit ' .. vim.fn.fnameescape(project .. '/train.py'))
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo.filetype = 'python'
  local id = vim.lsp.start_client({ name = 'cublame', cmd = { cublame, 'lsp' }, root_dir = project })
  assert(id, 'no client')
  vim.lsp.buf_attach_client(buffer, id)
  local client = function() return vim.lsp.get_client_by_id(id) end
  wait_for('the server', function() return client() and client().initialized end)

  local function diagnostics() return vim.diagnostic.get(buffer) end
  local done
  vim.fn.jobstart({ cublame, 'run', '--mode', 'off', '--', 'python3', 'train.py' },
    { cwd = project, on_exit = function() done = true end })
  wait_for('the end of the run', function() return done end)
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  local first = diagnostics()[1]
  assert(first.lnum + 1 == fault_line() and first.source == 'cublame', vim.inspect(first))

  vim.api.nvim_win_set_cursor(0, { first.lnum + 1, first.col })
  local params = vim.lsp.util.make_range_params()
  params.context = { diagnostics = {} }
  local answer = vim.lsp.buf_request_sync(buffer, 'textDocument/codeAction', params, 5000)[id].result
  local dismiss = vim.tbl_filter(function(action) return action.title == 'Dismiss' end, answer)[1]
  assert(dismiss, vim.inspect(answer))
  client().request_sync('workspace/executeCommand', { command = dismiss.command.command, arguments = dismiss.command.arguments }, 5000, buffer)
  wait_for('the end of the diagnostic', function() return #diagnostics() == 0 end)

  local run = { command = 'cublame.run', arguments = { { uri = vim.uri_from_fname(project .. '/wait.py') } } }
  client().request_sync('workspace/executeCommand', run, 5000, buffer)
  wait_for('the run', function() return vim.loop.fs_stat(project .. '/started') ~= nil end)
  local stopped
  wait_for('a run to stop', function()
    local reply = client().request_sync('workspace/executeCommand', { command = 'cublame.stop' }, 5000, buffer)
    stopped = reply and reply.result and reply.result.run
    return stopped ~= nil
  end)
  wait_for('its report', function() return vim.loop.fs_stat(project .. '/.cublame/runs/' .. stopped .. '/report.json') ~= nil end)
  vim.lsp.stop_client(id)
  wait_for('the end of the server', function() return vim.lsp.client_is_stopped(id) end)
end

local ok, failure = pcall(main)
io.stdout:write('\n' .. (ok and 'passed' or ('FAILED ' .. tostring(failure))) .. '\n')
vim.cmd(ok and 'qall!' or 'cquit 1')
