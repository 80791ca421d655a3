--- Where a project starts, and where its runs and its mode are kept: by the rules of server/src/session/place.rs.
local M = {}

local FOLDER = '.cublame'
local ROOT_MARKS = { '.vscode', '.idea', '.git', 'pyproject.toml' }

--- The nearest ancestor with a `.cublame`, else the nearest with a mark of a root.
---@param source string|integer A path or a buffer.
---@return string?
function M.root(source) return vim.fs.root(source, { FOLDER, ROOT_MARKS }) end

--- The folder with the runs and the mode.
---@param start string
---@return string
function M.folder(start)
  local chosen = vim.env.CUBLAME_DIR
  if chosen and chosen ~= '' then return vim.startswith(chosen, '/') and chosen or vim.fs.joinpath(start, chosen) end
  return vim.fs.joinpath(M.root(start) or start, FOLDER)
end

return M
