-- The plugin for Neovim in a real one: every command, the diagnostics and actions, the status line, health and help.
local project, plugin = vim.env.PROJECT, vim.env.EDITORS .. '/nvim'

local function line_of(file, mark)
  for number, line in ipairs(vim.fn.readfile(file)) do
    if line:match(mark) then return number end
  end
end

local function wait_for(what, condition)
  local found
  assert(vim.wait(20000, function()
    found = condition()
    return found
  end, 20), what .. ' did not come')
  return found
end

local function equal(found, expected)
  assert(vim.deep_equal(found, expected), ('%s where %s was expected'):format(vim.inspect(found), vim.inspect(expected)))
end

local function contains(text, part) assert(text:find(part, 1, true), ('no %q in:\n%s'):format(part, text)) end

local function text_of(buffer) return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') end

local function open(name)
  vim.cmd.edit(vim.fn.fnameescape(project .. '/' .. name))
  -- With -l no file types are found by themselves.
  vim.bo.filetype = 'python'
  return vim.api.nvim_get_current_buf()
end

local function read(name)
  local file = io.open(project .. '/' .. name)
  return file and file:read('*a')
end

-- What the plugin and the server say to the user.
local said = {}
vim.notify = function(text) table.insert(said, text) end
local function wait_for_saying(part)
  return wait_for(part, function() return vim.iter(said):find(function(text) return text:find(part, 1, true) end) end)
end

local tests = {}

-- The workspace's own `cublame` stands first on PATH, and a word of it would be a file.
function tests.nothing_of_the_workspace_is_run()
  local found = require('cublame.program').find(project)
  equal(found.refused, { project .. '/bin/cublame' })
  equal(found.path, vim.env.ON_PATH)
  vim.env.PATH, vim.env.PATH_BEFORE = project .. '/bin:bin:.', vim.env.PATH
  contains(require('cublame.program').find(project).why, 'inside the workspace')
  vim.env.PATH = vim.env.PATH_BEFORE
  -- A link in the workspace is the workspace's word too; a home is not a stranger's.
  assert(require('cublame.program').is_of_workspace(project .. '/link/cublame', project))
  assert(not require('cublame.program').is_of_workspace(vim.env.ON_PATH, '/'))
end

function tests.a_wrong_option_is_refused()
  local done, why = pcall(require('cublame').setup, { run_in = 'window' })
  assert(not done)
  contains(why, "'terminal' or 'background'")
end

local buffer, fault

function tests.setup_starts_the_server_for_a_python_file()
  equal(require('cublame').statusline(), '')
  vim.cmd('Cublame run')
  contains(said[#said], 'no server is running')
  require('cublame').setup()
  buffer = open('train.py')
  fault = line_of(project .. '/train.py', '# @fault$')
  -- Who is quicker than the server waits for it.
  vim.cmd('Cublame runs')
  contains(said[#said], 'no runs yet')
  equal(vim.lsp.get_clients({ name = 'cublame', bufnr = buffer })[1].root_dir, project)
  equal(require('cublame').statusline(), 'CUDA: trace')
end

function tests.the_mode_is_chosen_from_a_list_or_named()
  vim.ui.select = function(modes, options, choose)
    contains(options.format_item(modes[1]), 'trace, active')
    choose(vim.iter(modes):find(function(mode) return mode.name == 'blocking' end))
  end
  vim.cmd('Cublame mode')
  wait_for_saying('mode blocking from now on')
  wait_for('the file with the mode', function() return read('.cublame/mode') == 'blocking\n' end)
  equal(require('cublame').statusline(), 'CUDA: blocking')
  vim.cmd('Cublame mode off')
  wait_for_saying('mode off from now on')
  wait_for('the file with the mode', function() return read('.cublame/mode') == 'off\n' end)
  equal(require('cublame').statusline(), 'CUDA: off')
  vim.cmd('Cublame mode fast')
  wait_for_saying('`fast` is not a mode')
  -- Another program writes it.
  vim.fn.writefile({ 'core' }, project .. '/.cublame/mode')
  vim.cmd.doautocmd('FocusGained')
  equal(require('cublame').statusline(), 'CUDA: core')
  vim.fn.writefile({ 'off' }, project .. '/.cublame/mode')
  vim.cmd.doautocmd('FocusGained')
end

function tests.words_are_completed()
  local complete = function(line) return vim.fn.getcompletion(line, 'cmdline') end
  equal(complete('Cublame r'), { 'run', 'runs', 'report' })
  equal(complete('Cublame mode b'), { 'blocking' })
  equal(complete("'<,'>Cublame ex"), { 'explain' })
  vim.cmd('Cublame fly')
  contains(said[#said], 'fly: the subcommands are run, stop')
end

local function diagnostics() return vim.diagnostic.get(buffer) end

local function apply(title)
  vim.api.nvim_win_set_cursor(0, { fault, 0 })
  vim.lsp.buf.code_action({ filter = function(action) return action.title == title end, apply = true })
end

function tests.a_run_in_the_terminal_is_shown_at_its_line()
  vim.api.nvim_buf_set_lines(buffer, -1, -1, false, { '# written before the run' })
  vim.cmd('Cublame run --steps 3')
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  contains(read('train.py'), '# written before the run')
  local first = diagnostics()[1]
  equal({ first.lnum + 1, first.source, first.code }, { fault, 'cublame', 'device-assert' })
  equal(vim.api.nvim_get_current_buf(), buffer)
  local terminal = vim.iter(vim.api.nvim_list_bufs()):find(function(it) return vim.bo[it].buftype == 'terminal' end)
  wait_for('the verdict', function() return text_of(terminal):gsub('\n', ''):find('train.py:' .. fault, 1, true) end)
  wait_for('the status line', function() return require('cublame').statusline() == 'CUDA: off, 1 failed' end)
end

function tests.the_runs_are_a_quickfix_list()
  vim.cmd('Cublame runs')
  local items = vim.fn.getqflist()
  contains(items[1].text, 'failed, mode off')
  contains(items[1].text, '--steps 3')
  equal({ items[2].valid, items[2].lnum, vim.api.nvim_buf_get_name(items[2].bufnr) }, { 1, fault, project .. '/train.py' })
  vim.cmd.cclose()
  vim.cmd.wincmd('t')
end

function tests.the_report_is_opened_and_copied()
  vim.cmd('Cublame report')
  wait_for('the report', function() return vim.api.nvim_buf_get_name(0):match('report%.%w+$') end)
  contains(text_of(0), 'device-side assert')
  assert(not vim.bo.modifiable)
  vim.cmd.close()
  vim.cmd.wincmd('t')
  apply('Copy the report')
  wait_for('the copy', function() return vim.fn.getreg('"'):find('device-side assert', 1, true) end)
end

function tests.actions_are_applied()
  local run = diagnostics()[1].user_data.lsp.data.run
  vim.lsp.handlers['window/showMessageRequest'] = function(_, request) return request.actions[1] end
  apply('Rerun with blocking launches')
  wait_for('the rerun', function()
    local now = diagnostics()[1]
    return now and now.user_data.lsp.data.run ~= run and now.user_data.lsp.data.mode == 'blocking'
  end)
  apply('Dismiss')
  wait_for('the end of the diagnostic', function() return #diagnostics() == 0 end)
  wait_for('the status line', function() return require('cublame').statusline() == 'CUDA: off' end)
end

function tests.a_log_is_explained()
  local log = {
    'Traceback (most recent call last):',
    ('  File "%s/train.py", line %d, in forward'):format(project, fault),
    'RuntimeError: CUDA error: device-side assert triggered',
  }
  vim.cmd.new()
  vim.api.nvim_buf_set_lines(0, 0, -1, false, log)
  vim.cmd('%Cublame explain')
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  vim.cmd.bwipeout({ bang = true })
  apply('Dismiss')
  wait_for('the end of the diagnostic', function() return #diagnostics() == 0 end)
  vim.fn.setreg('l', log)
  vim.cmd('Cublame explain l')
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  vim.fn.setreg('l', {})
  vim.cmd('Cublame explain l')
  wait_for_saying('there is no text to explain')
end

function tests.a_run_is_stopped()
  open('wait.py')
  vim.cmd('Cublame run')
  wait_for('the run', function() return read('started') end)
  wait_for('the status line', function() return require('cublame').statusline():match('running') end)
  vim.cmd('Cublame stop')
  wait_for_saying('asked to stop')
  wait_for('its end', function() return not require('cublame').statusline():match('running') end)
  vim.cmd('Cublame stop')
  wait_for('that there is none', function() return #said > 0 and said[#said]:match('^cublame: no run') end)
end

function tests.a_json_file_is_the_servers_only_where_it_holds_run_configurations()
  vim.fn.mkdir(project .. '/.vscode', 'p')
  for name, count in pairs({ ['.vscode/launch.json'] = 1, ['data.json'] = 0 }) do
    vim.fn.writefile({ '{ "version": "0.2.0", "configurations": [] }' }, project .. '/' .. name)
    vim.cmd.edit(vim.fn.fnameescape(project .. '/' .. name))
    vim.bo.filetype = 'json'
    vim.wait(200, function() return false end)
    equal(#vim.lsp.get_clients({ name = 'cublame', bufnr = 0 }), count)
  end
end

function tests.the_health_check_finds_nothing_wrong()
  vim.cmd.checkhealth('cublame')
  local health = text_of(0)
  contains(health, ('The program is %s (cublame '):format(vim.env.ON_PATH))
  contains(health, ('%s/bin/cublame is not used'):format(project))
  contains(health, ('A server runs for %s, in mode off'):format(project))
  assert(not health:match('ERROR'), health)
end

function tests.the_help_has_its_tags()
  vim.cmd.helptags(plugin .. '/doc')
  for _, name in ipairs(require('cublame.commands').names()) do
    vim.cmd.help(':Cublame-' .. name)
    equal(vim.fs.basename(vim.api.nvim_buf_get_name(0)), 'cublame.txt')
  end
end

function tests.debugging_without_nvim_dap_says_what_is_missing()
  if vim.env.NVIM_DAP then return end
  open('train.py')
  vim.cmd('Cublame debug')
  wait_for_saying('needs the plugin nvim-dap')
end

function tests.nothing_was_left_unsaid()
  equal(read('bin/ran'), nil)
  equal(vim.v.errmsg, '')
end

local ORDER = {
  'nothing_of_the_workspace_is_run', 'a_wrong_option_is_refused', 'setup_starts_the_server_for_a_python_file',
  'the_mode_is_chosen_from_a_list_or_named', 'words_are_completed', 'a_run_in_the_terminal_is_shown_at_its_line',
  'the_runs_are_a_quickfix_list', 'the_report_is_opened_and_copied', 'actions_are_applied', 'a_log_is_explained',
  'a_run_is_stopped', 'a_json_file_is_the_servers_only_where_it_holds_run_configurations',
  'the_health_check_finds_nothing_wrong', 'the_help_has_its_tags', 'debugging_without_nvim_dap_says_what_is_missing',
  'nothing_was_left_unsaid',
}

vim.opt.runtimepath:append(plugin)
vim.cmd.runtime('plugin/cublame.lua')
local ok, failure, at = true, nil, nil
for _, name in ipairs(ORDER) do
  at = name
  ok, failure = xpcall(tests[name], debug.traceback)
  if not ok then break end
end
io.stdout:write(('\n%s\n'):format(ok and 'passed' or ('FAILED %s: %s\n%s'):format(at, failure, table.concat(said, '\n'))))
vim.cmd(ok and 'qall!' or 'cquit 1')
