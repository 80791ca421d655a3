--- The windows of the plugin: a terminal for runs, and a page for reports.
local M = {}

local TERMINAL_HEIGHT = 12

---@type { window: integer, job: integer }?
local last

--- Runs a command in a terminal below, and leaves the cursor where it is. The window of a run that has ended is used again.
---@param argv string[]
---@param cwd string
function M.run(argv, cwd)
  local from = vim.api.nvim_get_current_win()
  if last and vim.api.nvim_win_is_valid(last.window) and vim.fn.jobwait({ last.job }, 0)[1] ~= -1 then
    vim.api.nvim_set_current_win(last.window)
    vim.cmd.enew()
  else
    vim.cmd(('botright %dnew'):format(TERMINAL_HEIGHT))
  end
  vim.bo.bufhidden = 'wipe'
  local job = vim.fn.jobstart(argv, { term = true, cwd = cwd })
  last = { window = vim.api.nvim_get_current_win(), job = job }
  -- At its end a terminal follows what is printed.
  vim.cmd.normal({ 'G', bang = true })
  if vim.api.nvim_win_is_valid(from) then vim.api.nvim_set_current_win(from) end
end

--- A page in HTML is the browser's.
---@param path string
function M.show_report(path)
  if path:match('%.html$') then
    vim.ui.open(path)
    return
  end
  vim.cmd.split(vim.fn.fnameescape(path))
  vim.bo.modifiable = false
  vim.bo.bufhidden = 'wipe'
end

return M
