--- Where the program is. What a workspace brings along is never run: not from its folder, and not by a relative name.
local M = {}

---@class cublame.Found
---@field path? string
---@field why string Why this one; or why there is none, as a sentence.
---@field refused string[] Programs that were there and are not used, inside the workspace.

--- The one that the user named, else the first on $PATH.
---@param workspace? string The workspace's folder.
---@return cublame.Found
function M.find(workspace)
  local named = require('cublame').options.path
  if named then return M.named(vim.fs.normalize(named)) end
  local refused = {}
  for folder in vim.gsplit(vim.env.PATH or '', ':', { plain = true, trimempty = true }) do
    local path = vim.fs.joinpath(folder, 'cublame')
    -- A relative folder would be looked up in the working directory, which the workspace may decide.
    if vim.startswith(folder, '/') and vim.fn.executable(path) == 1 then
      if not M.is_of_workspace(path, workspace) then return { path = path, why = 'it is on $PATH', refused = refused } end
      table.insert(refused, path)
    end
  end
  local why = 'No cublame program was found: put one on $PATH, or name it with `path` in setup().'
  if refused[1] then
    why = ('%s is not used: it is inside the workspace. If you trust it, name it with `path` in setup().'):format(refused[1])
  end
  return { why = why, refused = refused }
end

---@param path string
---@return cublame.Found
function M.named(path)
  if not vim.startswith(path, '/') then
    return { why = ('%s is not used: `path` in setup() has to be absolute.'):format(path), refused = {} }
  elseif vim.fn.executable(path) == 0 then
    return { why = ('%s, which setup() names, cannot be executed.'):format(path), refused = {} }
  end
  return { path = path, why = 'setup() names it', refused = {} }
end

--- A link in the workspace to a program outside is still the workspace's word, and a link to the inside is no way out.
--- Where the user's home is the workspace, or in it, the user's own programs are in it too, and nothing is refused.
---@param path string
---@param workspace? string
---@return boolean
function M.is_of_workspace(path, workspace)
  if not workspace then return false end
  local real = function(name) return vim.uv.fs_realpath(name) or name end
  local within = function(inner, outer) return vim.startswith(inner .. '/', (outer:gsub('/*$', '/'))) end
  if within(real(vim.uv.os_homedir() or '/'), real(workspace)) then return false end
  return within(path, workspace) or within(real(path), real(workspace))
end

return M
