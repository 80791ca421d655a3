-- Defines :Cublame. Nothing else is loaded before it is used.
if vim.g.loaded_cublame then return end
vim.g.loaded_cublame = true

if vim.fn.has('nvim-0.11') == 0 then
  local text = 'cublame: this plugin needs Neovim 0.11. The language server works without it: :help cublame-old'
  vim.cmd(("command! -nargs=* -range Cublame echohl ErrorMsg | echomsg '%s' | echohl None"):format(text))
  return
end

vim.api.nvim_create_user_command('Cublame', function(given) require('cublame.commands').execute(given) end, {
  nargs = '*',
  range = true,
  desc = 'CUDA failures: run, stop, debug, mode, explain, runs, report, doctor',
  complete = function(word, line) return require('cublame.commands').complete(word, line) end,
})
