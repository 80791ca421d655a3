;;; harness.el --- What the tests in Emacs share  -*- lexical-binding: t -*-
(require 'cl-lib)
(require 'eglot)
(require 'flymake)
(require 'seq)
(require 'subr-x)

(defvar the-project (file-name-as-directory (getenv "PROJECT")))

(setq eglot-sync-connect 20
      eglot-autoshutdown t
      confirm-kill-processes nil
      project-find-functions (list (lambda (_) (cons 'transient the-project))))

(defmacro test (name &rest body)
  "Run one test, BODY, now.  The first that fails ends the editor."
  (declare (indent 1))
  `(condition-case failure
       (progn ,@body)
     (error (princ (format "\nFAILED %s: %s\n" ,name (error-message-string failure)))
            (leave 1))))

(defun all-passed ()
  (princ "\npassed\n")
  (leave 0))

(defun leave (status)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer (set-buffer-modified-p nil)))
  (kill-emacs status))

(defun wait-for (what condition)
  "What CONDITION gives, as soon as it gives something."
  (let ((left 1000) found)
    (while (and (not (setq found (funcall condition))) (> left 0))
      (accept-process-output nil 0.02)
      (flymake-start)
      (setq left (1- left)))
    (or found (error "%s did not come" what))))

(defun equals (found expected)
  (unless (equal found expected) (error "%S where %S was expected" found expected)))

(defun contains (text part)
  (unless (and text (string-search part text)) (error "no %S in %S" part text)))

(defun contents (name)
  "The text of a file of the project, or nil."
  (ignore-errors
    (with-temp-buffer (insert-file-contents (concat the-project name)) (buffer-string))))

(defun nudge ()
  "Have something more come from the server.
jsonrpc.el of Emacs 28 leaves what came in one read with an answer until the next
read: an answer ends its process filter by a throw."
  (let ((server (eglot-current-server)))
    (when server
      (jsonrpc-request server :textDocument/hover (eglot--TextDocumentPositionParams)))))

(defun fault-line ()
  "The line of train.py that fails."
  (save-excursion
    (goto-char (point-min))
    (re-search-forward "# @fault$")
    (line-number-at-pos)))

(defun apply-action (title)
  "Do what the code action TITLE at the first diagnostic says."
  (let* ((diagnostic (car (flymake-diagnostics)))
         (from (flymake-diagnostic-beg diagnostic))
         (to (flymake-diagnostic-end diagnostic))
         (actions (append (eglot-code-actions from to "quickfix" nil) nil))
         (command (plist-get (seq-find (lambda (action) (equal (plist-get action :title) title)) actions) :command)))
    (unless command (error "no action %s in %S" title actions))
    (if (fboundp 'eglot-execute)
        (eglot-execute (eglot-current-server) command)
      (eglot-execute-command (eglot-current-server) (intern (plist-get command :command)) (plist-get command :arguments)))))

(defun diagnostic-at (line)
  "Wait for a diagnostic, which has to be at LINE."
  (let ((diagnostic (car (wait-for "the diagnostic" #'flymake-diagnostics))))
    (equals (line-number-at-pos (flymake-diagnostic-beg diagnostic)) line)
    (contains (flymake-diagnostic-text diagnostic) "device-assert")))

(defun no-diagnostic ()
  (wait-for "the end of the diagnostic" (lambda () (nudge) (null (flymake-diagnostics)))))

(provide 'harness)
;;; harness.el ends here
