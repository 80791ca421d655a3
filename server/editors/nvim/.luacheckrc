std = 'luajit'
read_globals = { 'vim' }
-- Buffer options are set through fields of vim.
globals = { 'vim.bo', 'vim.g', 'vim.lsp' }
max_line_length = 140
