-- What `vim.lsp.enable('cublame')` starts. `vim.lsp.config('cublame', { ... })` changes any of it.
return require('cublame.server').config
