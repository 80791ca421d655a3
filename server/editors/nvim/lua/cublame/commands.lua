--- The subcommands of :Cublame.
local M = {}

local function tell(text, level) vim.notify('cublame: ' .. text, level or vim.log.levels.INFO) end

local function refuse(text) tell(text, vim.log.levels.ERROR) end

--- How long a server may take to start, in milliseconds.
local STARTING = 5000

--- Will the current buffer have a server in a moment?
local function is_starting()
  local filetypes = vim.lsp.is_enabled('cublame') and vim.lsp.config.cublame.filetypes or {}
  local root = require('cublame.project').root(0)
  return vim.tbl_contains(filetypes, vim.bo.filetype) and require('cublame.program').find(root).path ~= nil
end

--- The server of the current buffer, else any: a log can be explained from any buffer.
---@return vim.lsp.Client?
local function client()
  local attached = function() return vim.lsp.get_clients({ name = 'cublame', bufnr = 0 })[1] end
  if not attached() and is_starting() then vim.wait(STARTING, attached, 20) end
  local server = attached() or vim.lsp.get_clients({ name = 'cublame' })[1]
  if not server then refuse('no server is running: open a Python file of the project. :checkhealth cublame says more.') end
  return server
end

---@param server vim.lsp.Client
---@param command string
---@param argument? table
---@param done? fun(answer: any)
local function order(server, command, argument, done)
  local params = { command = command, arguments = argument and { argument } or nil }
  server:request('workspace/executeCommand', params, function(failure, answer)
    if failure then
      refuse(failure.message)
    elseif done then
      done(answer)
    end
  end)
end

--- The program of the current buffer, as it is in the buffer.
---@return string? path
local function program()
  local path = vim.api.nvim_buf_get_name(0)
  if path == '' or vim.bo.buftype ~= '' then return refuse('the current buffer is no file that could be run.') end
  vim.cmd.update({ mods = { silent = true } })
  return path
end

---@class cublame.Given
---@field arguments string[]
---@field lines? [integer, integer] The range.

---@type table<string, fun(given: cublame.Given)>
local subcommands = {}

function subcommands.run(given)
  local server, path = client(), nil
  if server then path = program() end
  if path then order(server, 'cublame.run', { uri = vim.uri_from_fname(path), arguments = given.arguments }) end
end

function subcommands.stop()
  local server = client()
  if server then order(server, 'cublame.stop', nil, function() tell('the run is asked to stop.') end) end
end

function subcommands.debug(given)
  local path = program()
  if path then require('cublame.dap').debug(path, given.arguments) end
end

function subcommands.mode(given)
  local server = client()
  if not server then return end
  local modes = require('cublame.mode')
  local set = function(mode)
    modes.set(server, mode, function(failure)
      if failure then refuse(failure) else tell(('runs of this workspace are in mode %s from now on.'):format(mode)) end
    end)
  end
  if given.arguments[1] then return set(given.arguments[1]) end
  local active = modes.of(server)
  vim.ui.select(modes.OFFERED, {
    prompt = 'How CUDA failures are found',
    format_item = function(mode)
      return ('%s%s: %s (%s)'):format(mode.name, mode.name == active and ', active' or '', mode.gives, mode.costs)
    end,
  }, function(chosen)
    if chosen then set(chosen.name) end
  end)
end

function subcommands.explain(given)
  local server = client()
  if not server then return end
  local text
  if given.lines then
    text = table.concat(vim.api.nvim_buf_get_lines(0, given.lines[1] - 1, given.lines[2], false), '\n')
  else
    text = vim.fn.getreg(given.arguments[1] or (vim.fn.has('clipboard') == 1 and '+' or '"'))
  end
  if not text:find('%S') then return refuse('there is no text to explain: give a range, such as :%Cublame explain, or a register.') end
  order(server, 'cublame.explainText', { text = text })
end

function subcommands.runs()
  local server = client()
  if not server then return end
  local runs = require('cublame.runs')
  local items = runs.quickfix(runs.of(server.id))
  if not items[1] then return tell('this workspace has no runs yet: :Cublame run, or `cublame run` in any terminal.') end
  vim.fn.setqflist({}, ' ', { title = 'cublame runs', items = items })
  vim.cmd.copen()
end

function subcommands.report()
  local server = client()
  -- It is the text that an editor in a terminal can show; the page is among the actions at a diagnostic.
  if server then order(server, 'cublame.copyReport', nil, require('cublame.windows').show_report) end
end

function subcommands.doctor()
  local root = require('cublame.project').root(0) or vim.uv.cwd()
  local found = require('cublame.program').find(root)
  if not found.path then return refuse(found.why) end
  require('cublame.windows').run({ found.path, 'doctor' }, root)
end

--- What :Cublame was given.
---@param given vim.api.keyset.create_user_command.command_args
function M.execute(given)
  local arguments = vim.list_slice(given.fargs, 2)
  local name = given.fargs[1]
  if not subcommands[name] then
    return refuse(('%s: the subcommands are %s.'):format(name or 'a subcommand is missing', table.concat(M.names(), ', ')))
  end
  subcommands[name]({ arguments = arguments, lines = given.range > 0 and { given.line1, given.line2 } or nil })
end

---@param word string The one under the cursor.
---@param line string
---@return string[]
function M.complete(word, line)
  local before = vim.split(line:sub(1, #line - #word), '%s+', { trimempty = true })
  local begins = function(name) return vim.startswith(name, word) end
  -- A range stands in one word with the command.
  local subcommand = before[2]
  if not subcommand then return vim.tbl_filter(begins, M.names()) end
  if subcommand == 'mode' and #before == 2 then
    local names = vim.tbl_map(function(mode) return mode.name end, require('cublame.mode').OFFERED)
    return vim.tbl_filter(begins, names)
  end
  return (subcommand == 'run' or subcommand == 'debug') and vim.fn.getcompletion(word, 'file') or {}
end

---@return string[]
function M.names() return { 'run', 'stop', 'debug', 'mode', 'explain', 'runs', 'report', 'doctor' } end

---@param server vim.lsp.Client
---@param arguments? table[]
function M.copy_report(server, arguments)
  order(server, 'cublame.copyReport', arguments and arguments[1], function(report)
    local register = vim.fn.has('clipboard') == 1 and '+' or '"'
    vim.fn.setreg(register, report)
    tell(('the report is in register %s.'):format(register))
  end)
end

return M
