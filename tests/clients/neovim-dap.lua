-- The plugin for Neovim with nvim-dap and a real debugpy, through `cublame dap`.
local harness = dofile(vim.env.HERE .. '/harness.lua')
local test, wait_for, equal, contains = harness.test, harness.wait_for, harness.equal, harness.contains
local project, fault = harness.project, harness.fault()

local said = {}
vim.notify = function(text) table.insert(said, text) end

vim.opt.runtimepath:append(vim.env.EDITORS .. '/nvim')
vim.opt.runtimepath:append(vim.env.NVIM_DAP)
vim.cmd.runtime('plugin/cublame.lua')
local dap = require('dap')
require('cublame').setup({ settings = { python = vim.env.DEBUGPY_PYTHON } })
local buffer = harness.open('train.py')

test('a configuration for the current file is among those of nvim-dap', function()
  local names = vim.tbl_map(function(configuration) return configuration.name end, dap.configurations.python)
  equal(names, { 'cublame: current file' })
end)

test('the failing line is said while the debugger stands there, and shown in the file', function()
  vim.fn.writefile({ 'blocking' }, project .. '/.cublame/mode')
  local output = ''
  dap.listeners.after.event_output.test = function(_, event) output = output .. event.output end
  vim.cmd('Cublame debug --steps 3')
  local session = wait_for('the stop', function()
    local session = dap.session()
    return session and session.stopped_thread_id and session.current_frame and session
  end)
  equal(session.current_frame.line, fault)
  wait_for('the verdict', function() return output:find('train.py:' .. fault, 1, true) end)
  -- The mode of the project and the arguments have reached the program.
  local answer
  session:evaluate('[__import__("os").environ["CUDA_LAUNCH_BLOCKING"]] + __import__("sys").argv[1:]', function(_, given) answer = given end)
  wait_for('the answer', function() return answer end)
  equal(answer.result, "['1', '--steps', '3']")
  dap.continue()
  wait_for('the end', function() return not dap.session() end)
  local first = wait_for('the diagnostic', function()
    -- nvim-dap shows the exception as a diagnostic of its own.
    return vim.iter(vim.diagnostic.get(buffer)):find(function(diagnostic) return diagnostic.source == 'cublame' end)
  end)
  equal({ first.lnum + 1, first.code }, { fault, 'device-assert' })
end)

harness.all_passed()
