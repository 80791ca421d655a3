;;; lsp-mode.el --- Emacs with lsp-mode as a plain client  -*- lexical-binding: t -*-
;; Set up by the very lines of the documentation.
(load (concat (getenv "HERE") "/harness"))
(require 'lsp-mode)
(require 'lsp-modeline)

(setq lsp-session-file (concat the-project "../state/lsp-session")
      lsp-diagnostics-provider :none
      lsp-enable-file-watchers nil
      lsp-restart 'ignore)

(with-temp-buffer
  (insert-file-contents (concat (getenv "HERE") "/../../docs/editors.md"))
  (search-forward "(with-eval-after-load 'lsp-mode")
  (goto-char (match-beginning 0))
  (eval (read (current-buffer)) t))

(defun found () (append (gethash (concat the-project "train.py") (lsp-diagnostics)) nil))

(test "a run in a terminal is shown at its line"
  ;; lsp-mode finds the program by its name.
  (setq exec-path (list (file-name-directory (getenv "ON_PATH")) "/usr/bin"))
  (lsp-workspace-folders-add the-project)
  (find-file (concat the-project "train.py"))
  (python-mode)
  (lsp)
  (wait-for "the server" #'lsp-workspaces)
  (let ((default-directory the-project))
    (call-process (getenv "CUBLAME") nil nil nil "run" "--mode" "off" "--" "python3" "train.py"))
  (let ((diagnostic (car (wait-for "the diagnostic" #'found))))
    (equals (1+ (lsp:position-line (lsp:range-start (lsp:diagnostic-range diagnostic)))) (fault-line))
    (contains (lsp:diagnostic-message diagnostic) "a bad index")))

(all-passed)
;;; lsp-mode.el ends here
