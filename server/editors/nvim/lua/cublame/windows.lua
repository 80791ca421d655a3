--- The windows of the plugin: a terminal for runs, and a text for reports.
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

--- Shows a report, as Markdown, in a window that goes with its text.
---@param report string
function M.show_report(report)
  vim.cmd.new()
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(report, '\n'))
  vim.bo.buftype = 'nofile'
  vim.bo.bufhidden = 'wipe'
  vim.bo.filetype = 'markdown'
  vim.bo.modifiable = false
end

--- A page in HTML is the browser's, if there is one.
---@param path string
function M.show_page(path)
  local _, failure = vim.ui.open(path)
  if failure then vim.notify(('cublame: the page is %s (%s)'):format(path, failure), vim.log.levels.WARN) end
end

return M
