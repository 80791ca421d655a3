--- The runs of the workspaces, as the servers tell them (`cublame/runs`: newest first).
local M = {}

---@class cublame.Place
---@field file string As the evidence has it.
---@field path? string Absolute, where it could be resolved.
---@field line integer From 1.

---@class cublame.Verdict
---@field summary string
---@field certainty 'exact'|'likely'|'suspect'|'unknown'
---@field fatal boolean
---@field place? cublame.Place
---@field reported? cublame.Place

---@class cublame.Run
---@field id string
---@field state 'running'|'succeeded'|'failed'|'interrupted'
---@field mode string
---@field argv string[]
---@field entry? string
---@field started number Unix seconds.
---@field dismissed boolean
---@field verdicts cublame.Verdict[] The root cause first.

---@type table<integer, cublame.Run[]>
local of_client = {}

---@param client_id integer
---@param runs cublame.Run[]
function M.set(client_id, runs)
  of_client[client_id] = runs
  require('cublame.mode').changed()
end

---@param client_id integer
function M.forget(client_id) of_client[client_id] = nil end

---@param client_id integer
---@return cublame.Run[]
function M.of(client_id) return of_client[client_id] or {} end

--- One line for the status line.
---@param mode string
---@param client_id integer
function M.summary(mode, client_id)
  local runs = M.of(client_id)
  local failed = M.standing_failures(runs)
  local running = vim.iter(runs):any(function(run) return run.state == 'running' end)
  return 'CUDA: ' .. mode .. (running and ', running' or '') .. (failed > 0 and (', %d failed'):format(failed) or '')
end

--- Of each program the newest run that came to an end, if it failed and nobody dismissed it.
---@param runs cublame.Run[]
---@return integer
function M.standing_failures(runs)
  local seen, failures = {}, 0
  for _, run in ipairs(runs) do
    local program = M.is_known(run.entry) and run.entry or table.concat(run.argv, ' ')
    if (run.state == 'failed' or run.state == 'succeeded') and not seen[program] then
      seen[program] = true
      local fatal = vim.iter(run.verdicts):any(function(verdict) return verdict.fatal end)
      if run.state == 'failed' and fatal and not run.dismissed then failures = failures + 1 end
    end
  end
  return failures
end

--- The runs as entries of the quickfix list: each verdict at its place, a run without one as a line of text.
---@param runs cublame.Run[]
function M.quickfix(runs)
  local items = {}
  for _, run in ipairs(runs) do
    local when = os.date('%H:%M:%S', math.floor(run.started))
    local what = ('%s %s, mode %s, %s'):format(when, run.state, run.mode, table.concat(run.argv, ' '))
    table.insert(items, { text = what, valid = 0 })
    for _, verdict in ipairs(run.verdicts) do
      local place = M.place(verdict)
      local text = ('%s (%s)'):format(verdict.summary, verdict.certainty)
      local kind = verdict.fatal and 'E' or 'W'
      local item = { text = text, type = kind, valid = place and 1 or 0 }
      if place then item.filename, item.lnum = place.path, place.line end
      table.insert(items, item)
    end
  end
  return items
end

--- Where to go for a verdict: the culprit, else where it surfaced, if the file is on this machine.
---@param verdict cublame.Verdict
---@return cublame.Place?
function M.place(verdict)
  for _, place in ipairs({ verdict.place or vim.NIL, verdict.reported or vim.NIL }) do
    if M.is_known(place) and M.is_known(place.path) then return place end
  end
end

--- JSON's null comes as vim.NIL.
function M.is_known(value) return value ~= nil and value ~= vim.NIL end

return M
