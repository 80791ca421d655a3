-- The plugin for Neovim in a real one: every command, the diagnostics and actions, the status line, health and help.
local harness = dofile(vim.env.HERE .. '/harness.lua')
local test, wait_for, equal, contains = harness.test, harness.wait_for, harness.equal, harness.contains
local project, read, open = harness.project, harness.read, harness.open
local plugin = vim.env.EDITORS .. '/nvim'

local function text_of(buffer) return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') end

-- What the plugin and the server say to the user.
local said = {}
vim.notify = function(text) table.insert(said, text) end
local function wait_for_saying(part)
  return wait_for(part, function() return vim.iter(said):find(function(text) return text:find(part, 1, true) end) end)
end

vim.opt.runtimepath:append(plugin)
vim.cmd.runtime('plugin/cublame.lua')

-- The workspace's own `cublame` stands first on PATH, and a word of it would be a file.
test('nothing of the workspace is run', function()
  local found = require('cublame.program').find(project)
  equal(found.refused, { project .. '/bin/cublame' })
  equal(found.path, vim.env.ON_PATH)
  vim.env.PATH, vim.env.PATH_BEFORE = project .. '/bin:bin:.', vim.env.PATH
  contains(require('cublame.program').find(project).why, 'inside the workspace')
  vim.env.PATH = vim.env.PATH_BEFORE
  -- A link in the workspace is the workspace's word too; a home is not a stranger's.
  assert(require('cublame.program').is_of_workspace(project .. '/link/cublame', project))
  assert(not require('cublame.program').is_of_workspace(vim.env.ON_PATH, '/'))
end)

test('a wrong option is refused', function()
  local done, why = pcall(require('cublame').setup, { run_in = 'window' })
  assert(not done)
  contains(why, "'terminal' or 'background'")
end)

local buffer, fault = nil, harness.fault()

test('setup starts the server for a python file', function()
  equal(require('cublame').statusline(), '')
  vim.cmd('Cublame run')
  contains(said[#said], 'no server is running')
  require('cublame').setup()
  buffer = open('train.py')
  -- Who is quicker than the server waits for it.
  vim.cmd('Cublame runs')
  contains(said[#said], 'no runs yet')
  equal(vim.lsp.get_clients({ name = 'cublame', bufnr = buffer })[1].root_dir, project)
  equal(require('cublame').statusline(), 'CUDA: trace')
end)

test('the mode is chosen from a list or named', function()
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
end)

test('words are completed', function()
  local complete = function(line) return vim.fn.getcompletion(line, 'cmdline') end
  equal(complete('Cublame r'), { 'run', 'runs', 'report' })
  equal(complete('Cublame mode b'), { 'blocking' })
  equal(complete("'<,'>Cublame ex"), { 'explain' })
  vim.cmd('Cublame fly')
  contains(said[#said], 'fly: the subcommands are run, stop')
end)

local function diagnostics() return vim.diagnostic.get(buffer) end

local function apply(title, line)
  vim.api.nvim_win_set_cursor(0, { line or fault, 0 })
  vim.lsp.buf.code_action({ filter = function(action) return action.title == title end, apply = true })
end

test('a run in the terminal is shown at its line', function()
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
end)

test('the runs are a quickfix list', function()
  vim.cmd('Cublame runs')
  local items = vim.fn.getqflist()
  contains(items[1].text, 'failed, mode off')
  contains(items[1].text, '--steps 3')
  equal({ items[2].valid, items[2].lnum, vim.api.nvim_buf_get_name(items[2].bufnr) }, { 1, fault, project .. '/train.py' })
  vim.cmd.cclose()
  vim.cmd.wincmd('t')
end)

test('the report is opened and copied', function()
  vim.cmd('Cublame report')
  wait_for('the report', function() return vim.bo.filetype == 'markdown' end)
  contains(text_of(0), 'device-side assert')
  assert(not vim.bo.modifiable)
  vim.cmd.close()
  vim.cmd.wincmd('t')
  apply('Copy the report')
  wait_for('the copy', function() return vim.fn.getreg('"'):find('device-side assert', 1, true) end)
  local page
  vim.ui.open = function(path) page = path end
  apply('Open the report')
  wait_for('the page', function() return page end)
  assert(page:match('report%.html$') and vim.uv.fs_stat(page), page)
end)

test('a run is made again in another mode, and what is dismissed is gone', function()
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
end)

local log = {
  'Traceback (most recent call last):',
  ('  File "%s/train.py", line %d, in forward'):format(project, fault),
  'RuntimeError: CUDA error: device-side assert triggered',
}

test('a log is explained', function()
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
end)

test('a run is stopped', function()
  open('wait.py')
  vim.cmd('Cublame run')
  wait_for('the run', function() return read('started') end)
  wait_for('the status line', function() return require('cublame').statusline():match('running') end)
  vim.cmd('Cublame stop')
  wait_for_saying('asked to stop')
  wait_for('its end', function() return not require('cublame').statusline():match('running') end)
  vim.cmd('Cublame stop')
  wait_for('that there is none', function() return #said > 0 and said[#said]:match('^cublame: no run') end)
end)

test('the lens runs the program', function()
  vim.fn.delete(project .. '/started')
  vim.lsp.codelens.refresh({ bufnr = 0 })
  wait_for('the lens', function() return #vim.lsp.codelens.get(0) > 0 end)
  equal(vim.lsp.codelens.get(0)[1].command.title, 'Run with cublame')
  vim.lsp.codelens.run()
  wait_for('the run', function() return read('started') end)
  vim.cmd('Cublame stop')
  wait_for('its end', function() return not require('cublame').statusline():match('running') end)
end)

test('a run in the background has no window', function()
  vim.fn.delete(project .. '/started')
  vim.lsp.enable('cublame', false)
  wait_for('the end of the server', function() return #vim.lsp.get_clients({ name = 'cublame' }) == 0 end)
  require('cublame').setup({ run_in = 'background', settings = { locale = 'zh' } })
  open('wait.py')
  local windows = #vim.api.nvim_list_wins()
  vim.cmd('Cublame run')
  wait_for('the run', function() return read('started') end)
  equal(#vim.api.nvim_list_wins(), windows)
  vim.cmd('Cublame stop')
  wait_for('its end', function() return not require('cublame').statusline():match('running') end)
end)

test('a log is explained in the language of the settings', function()
  buffer = open('train.py')
  vim.fn.setreg('l', log)
  vim.cmd('Cublame explain l')
  wait_for('the diagnostic', function() return #diagnostics() == 1 end)
  contains(diagnostics()[1].message, '索引')
end)

test('another server stands beside', function()
  if vim.env.RASS == '' then return end
  vim.lsp.config('ruff', { cmd = { vim.env.RASS .. '/ruff', 'server' }, filetypes = { 'python' }, root_dir = project })
  vim.lsp.enable('ruff')
  vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { 'import sys' })
  -- Reading the file type again starts what was enabled in the meantime.
  vim.bo[buffer].filetype = 'python'
  wait_for('both', function()
    local sources = vim.iter(diagnostics()):map(function(diagnostic) return diagnostic.source:lower() end):totable()
    return vim.tbl_contains(sources, 'ruff') and vim.tbl_contains(sources, 'cublame')
  end)
  vim.cmd.update()
end)

test('run configurations are written from a program', function()
  -- In the language of the settings, like all that the server offers.
  apply('写入 VS Code 运行配置', 1)
  contains(wait_for('the file', function() return read('.vscode/launch.json') end), '"CUBLAME_MODE": "blocking"')
end)

test("a json file is the server's only where it holds run configurations", function()
  vim.fn.mkdir(project .. '/.vscode', 'p')
  for name, count in pairs({ ['.vscode/launch.json'] = 1, ['train.ipynb'] = 1, ['data.json'] = 0 }) do
    vim.fn.writefile({ '{ "version": "0.2.0", "configurations": [] }' }, project .. '/' .. name)
    vim.cmd.edit(vim.fn.fnameescape(project .. '/' .. name))
    vim.bo.filetype = 'json'
    vim.wait(200, function() return false end)
    equal(#vim.lsp.get_clients({ name = 'cublame', bufnr = 0 }), count)
  end
end)

test('the health check finds nothing wrong', function()
  vim.cmd.checkhealth('cublame')
  local health = text_of(0)
  contains(health, ('The program is %s (cublame '):format(vim.env.ON_PATH))
  contains(health, ('%s/bin/cublame is not used'):format(project))
  contains(health, ('A server runs for %s, in mode off'):format(project))
  assert(not health:match('ERROR'), health)
end)

test('the help has its tags', function()
  vim.cmd.helptags(plugin .. '/doc')
  for _, name in ipairs(require('cublame.commands').names()) do
    vim.cmd.help(':Cublame-' .. name)
    equal(vim.fs.basename(vim.api.nvim_buf_get_name(0)), 'cublame.txt')
  end
end)

test('what the documentation says in Lua can be read', function()
  for _, page in ipairs({ vim.env.HERE .. '/../../docs/editors.md', plugin .. '/doc/cublame.txt' }) do
    local text = table.concat(vim.fn.readfile(page), '\n') .. '\n'
    local count = 0
    for snippet in (text:gsub('>lua\n', '```lua\n'):gsub('\n<\n', '\n```\n')):gmatch('```lua\n(.-)\n```') do
      count = count + 1
      assert(loadstring(snippet), snippet)
    end
    assert(count > 0, page)
  end
end)

test('the doctor says what it sees', function()
  local before = vim.api.nvim_list_bufs()
  open('train.py')
  vim.cmd('Cublame doctor')
  local terminal = vim.iter(vim.api.nvim_list_bufs()):find(function(it) return not vim.tbl_contains(before, it) and vim.bo[it].buftype == 'terminal' end)
  wait_for('its word on Python', function() return text_of(terminal):find('Python 3', 1, true) end)
end)

test('debugging without nvim dap says what is missing', function()
  if vim.env.NVIM_DAP then return end
  open('train.py')
  vim.cmd('Cublame debug')
  wait_for_saying('needs the plugin nvim-dap')
end)

test('nothing was left unsaid', function()
  equal(read('bin/ran'), nil)
  equal(vim.v.errmsg, '')
end)

harness.all_passed()
