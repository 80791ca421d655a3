;;; eglot.el --- Emacs with eglot as a plain client  -*- lexical-binding: t -*-
;; Another kind of client: flymake, no related information, no position encodings, no progress, no data.
(load (concat (getenv "HERE") "/harness"))

(defvar cublame (getenv "CUBLAME"))
(add-to-list 'eglot-server-programs `(python-mode . (,cublame "lsp")))

(defun order (command &rest arguments)
  (eglot-execute-command (eglot-current-server) command (vconcat arguments)))

(defun reports () (file-expand-wildcards (concat the-project ".cublame/runs/*/report.json")))

(find-file (concat the-project "train.py"))
(python-mode)
(apply #'eglot (eglot--guess-contact))
(wait-for "the server" #'eglot-current-server)

(test "a run in a terminal is shown at its line"
  (let ((default-directory the-project))
    (call-process cublame nil nil nil "run" "--mode" "off" "--" "python3" "train.py"))
  (diagnostic-at (fault-line)))

(test "hover has the verdict"
  (goto-char (flymake-diagnostic-beg (car (flymake-diagnostics))))
  (contains (format "%s" (nudge)) "kernel's own check"))

(test "what is dismissed is gone"
  (apply-action "Dismiss")
  (no-diagnostic))

(test "a run is started and stopped"
  (order 'cublame.run (list :uri (concat "file://" the-project "wait.py")))
  (wait-for "the run" (lambda () (contents "started")))
  (let ((before (length (reports))))
    (wait-for "a run to stop" (lambda () (ignore-errors (order 'cublame.stop) t)))
    (wait-for "its report" (lambda () (> (length (reports)) before)))))

(all-passed)
;;; eglot.el ends here
