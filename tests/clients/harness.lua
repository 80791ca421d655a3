-- What the tests in Neovim share. All of it works in 0.7.
local M = { project = vim.env.PROJECT }

--- Runs one test now. The first that fails ends the editor.
function M.test(name, body)
  local passed, failure = xpcall(body, debug.traceback)
  if passed then return end
  io.stdout:write(('\nFAILED %s: %s\n'):format(name, failure))
  vim.cmd('cquit 1')
end

function M.all_passed()
  io.stdout:write('\npassed\n')
  vim.cmd('qall!')
end

--- What the condition gives, as soon as it gives something.
function M.wait_for(what, condition)
  local found
  local came = vim.wait(20000, function()
    found = condition()
    return found
  end, 20)
  assert(came, what .. ' did not come')
  return found
end

function M.equal(found, expected)
  assert(vim.deep_equal(found, expected), ('%s where %s was expected'):format(vim.inspect(found), vim.inspect(expected)))
end

function M.contains(text, part) assert(text and text:find(part, 1, true), ('no %q in:\n%s'):format(part, text)) end

--- A file of the project, or nothing where there is none.
function M.read(name)
  local file = io.open(M.project .. '/' .. name)
  local text = file and file:read('*a')
  if file then file:close() end
  return text
end

--- Opens a program of the project, and gives its buffer.
function M.open(name)
  vim.cmd('edit ' .. vim.fn.fnameescape(M.project .. '/' .. name))
  -- Without a terminal and without a configuration no file types are found by themselves.
  vim.bo.filetype = 'python'
  return vim.api.nvim_get_current_buf()
end

--- The line of train.py that fails.
function M.fault()
  for number, line in ipairs(vim.fn.readfile(M.project .. '/train.py')) do
    if line:match('# @fault$') then return number end
  end
end

return M
