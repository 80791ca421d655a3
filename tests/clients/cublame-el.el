;;; cublame-el.el --- The package for Emacs in a real one  -*- lexical-binding: t -*-
;; Every command, the diagnostics and actions, the mode line, a second server beside; byte-compiled first, and linted.
(require 'seq)
(require 'subr-x)
(require 'checkdoc)

(defvar the-project (file-name-as-directory (getenv "PROJECT")))
(defvar the-package (concat (getenv "EDITORS") "/emacs/"))
(defvar the-fault)

(defun equals (found expected)
  (unless (equal found expected) (error "%S where %S was expected" found expected)))

(defun contains (text part)
  (unless (and text (string-search part text)) (error "no %S in %S" part text)))

(defun wait-for (what condition)
  (let ((left 1000) found)
    (while (and (not (setq found (funcall condition))) (> left 0))
      (accept-process-output nil 0.02)
      (flymake-start)
      (setq left (1- left)))
    (or found (error "%s did not come" what))))

;; What the package and the server say to the user.
(defvar the-said nil)
(advice-add 'message :before
            (lambda (&optional format &rest arguments)
              (when format (push (apply #'format-message format arguments) the-said))))
(defun wait-for-saying (part)
  (wait-for part (lambda ()
                   (nudge)
                   (seq-find (lambda (text) (string-search part text)) the-said))))

(defun nudge ()
  "Have something more come from the server.
jsonrpc.el of Emacs 28 leaves what came in one read with an answer until the next
read: an answer ends its process filter by a throw."
  (let ((server (eglot-current-server)))
    (when server
      (jsonrpc-request server :textDocument/hover (eglot--TextDocumentPositionParams)))))

(defun refused (function &rest arguments)
  (condition-case failure
      (progn (apply function arguments) (error "%S was not refused" function))
    (user-error (error-message-string failure))))

(defun contents (name)
  (ignore-errors
    (with-temp-buffer (insert-file-contents (concat the-project name)) (buffer-string))))

(defun here (name) (cl-find (concat the-project name) (buffer-list) :key #'buffer-file-name :test #'equal))

(defun mode-line () (with-current-buffer (here "train.py") (cublame-mode-line)))

(defun open-python (name)
  (find-file (concat the-project name))
  (python-mode)
  (eglot-ensure)
  (run-hooks 'post-command-hook)
  (wait-for "the server" #'eglot-current-server))

(defun apply-action (title)
  (let* ((diagnostic (car (flymake-diagnostics)))
         (from (flymake-diagnostic-beg diagnostic))
         (to (flymake-diagnostic-end diagnostic))
         (actions (append (eglot-code-actions from to "quickfix" nil) nil))
         (command (plist-get (seq-find (lambda (action) (equal (plist-get action :title) title)) actions) :command)))
    (unless command (error "no action %s in %S" title actions))
    (eglot-execute-command (eglot-current-server) (intern (plist-get command :command)) (plist-get command :arguments))))

(defun gone () (wait-for "the end of the diagnostic" (lambda () (nudge) (null (flymake-diagnostics)))))

;;; The tests, in their order

(defun test-byte-compiles-without-a-warning ()
  (let ((byte-compile-error-on-warn t))
    (unless (byte-compile-file (concat the-package "cublame.el")) (error "it does not compile"))))

(defun complaints (file)
  "What checkdoc says about FILE."
  (let (found)
    (with-current-buffer (find-file-noselect file)
      (let ((checkdoc-create-error-function
             (lambda (text start _end &optional _unfixable)
               (push (format "line %d: %s" (if start (line-number-at-pos start) 0) text) found)
               nil)))
        (checkdoc-current-buffer t))
      (kill-buffer))
    (nreverse found)))

(defun test-checkdoc-has-nothing-to-say ()
  (equals (complaints (concat the-package "cublame.el")) nil)
  ;; And it would: one that has said nothing may not have looked.
  (let ((bad (concat the-package "bad.el")))
    (with-temp-file bad
      (insert-file-contents (concat the-package "cublame.el"))
      (search-forward "\"Stop the newest run")
      (replace-match "\"stops newest run"))
    (unless (complaints bad) (error "checkdoc has not looked"))
    (delete-file bad)))

(defun test-nothing-of-the-project-is-run ()
  (load (concat the-package "cublame"))
  (equals (cublame-find-program the-project) (getenv "ON_PATH"))
  (let ((exec-path (list (concat the-project "bin") "bin" ".")))
    (contains (refused #'cublame-find-program the-project) "inside the project"))
  (let ((exec-path nil))
    (contains (refused #'cublame-find-program the-project) "put one on PATH"))
  (let ((cublame-program "bin/cublame"))
    (contains (refused #'cublame-find-program the-project) "absolute name"))
  ;; A link in the the-project is the the-project's word too; a home is not a stranger's.
  (unless (cublame--of-project-p (concat the-project "link/cublame") the-project) (error "a link leads out"))
  (when (cublame--of-project-p (getenv "ON_PATH") "/") (error "one's own programs are refused")))

(defun test-eglot-starts-the-server ()
  (contains (refused #'cublame-stop) "No cublame server is running")
  (cublame-setup)
  (open-python "train.py")
  (equals (type-of (eglot-current-server)) 'cublame-server)
  (setq the-fault (save-excursion (goto-char (point-min)) (re-search-forward "# @fault$") (line-number-at-pos)))
  (equals (mode-line) " CUDA:trace")
  (unless (member '(:eval (cublame-mode-line)) mode-line-misc-info) (error "it is not in the mode line")))

(defun test-the-mode-is-chosen ()
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt modes &rest _)
               (contains (funcall (plist-get completion-extra-properties :annotation-function) "core") "ends at the fault")
               (car (member "blocking" modes)))))
    (call-interactively #'cublame-choose-mode))
  (wait-for-saying "mode blocking from now on")
  (wait-for "the file with the mode" (lambda () (equal (contents ".cublame/mode") "blocking\n")))
  (equals (mode-line) " CUDA:blocking")
  (cublame-choose-mode "fast")
  (wait-for-saying "`fast` is not a mode")
  ;; Another program writes it.
  (with-temp-file (concat the-project ".cublame/mode") (insert "off\n"))
  (wait-for "the mode line" (lambda () (equal (mode-line) " CUDA:off"))))

(defun test-a-run-in-a-compilation-buffer-is-shown-at-its-line ()
  (goto-char (point-max))
  (insert "# written before the run\n")
  (cublame-run '("--steps" "3 4"))
  (wait-for "the diagnostic" #'flymake-diagnostics)
  (contains (contents "train.py") "# written before the run")
  (let ((diagnostic (car (flymake-diagnostics))))
    (equals (line-number-at-pos (flymake-diagnostic-beg diagnostic)) the-fault)
    (contains (flymake-diagnostic-text diagnostic) "device-assert"))
  (wait-for "the verdict" (lambda () (with-current-buffer "*cublame run*"
                                       (save-excursion (goto-char (point-min)) (search-forward "train.py:6" nil t)))))
  (wait-for "its end" (lambda () (not (get-buffer-process "*cublame run*"))))
  ;; The place in the verdict can be gone to.
  (with-current-buffer "*cublame run*"
    (compilation--ensure-parse (point-max))
    (goto-char (point-min))
    (re-search-forward "^ *--> ")
    (unless (get-text-property (point) 'compilation-message) (error "the place is no link: %s" (buffer-string))))
  (wait-for "the mode line" (lambda () (nudge) (equal (mode-line) " CUDA:off(1 failed)"))))

(defun test-the-runs-are-a-list-for-next-error ()
  (cublame-runs)
  (with-current-buffer "*cublame runs*"
    (contains (buffer-string) "failed, mode off")
    (contains (buffer-string) "--steps 3 4"))
  (next-error 1 t)
  (equals (list (buffer-file-name) (line-number-at-pos)) (list (concat the-project "train.py") the-fault)))

(defun test-the-report-is-opened-and-copied ()
  (cublame-report)
  (let ((report (wait-for "the report" (lambda ()
                                         (nudge)
                                         (seq-find (lambda (buffer) (string-match-p "report\\.md" (or (buffer-file-name buffer) "")))
                                                   (buffer-list))))))
    (contains (with-current-buffer report (buffer-string)) "device-side assert")
    (equals (buffer-local-value 'buffer-read-only report) t)
    (kill-buffer report))
  (switch-to-buffer (here "train.py"))
  (apply-action "Copy the report")
  (wait-for-saying "the report is copied")
  (contains (current-kill 0) "device-side assert"))

(defun test-actions-are-applied ()
  (let (asked)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (prompt choices &rest _) (setq asked prompt) (car choices))))
      (apply-action "Rerun with blocking launches")
      (wait-for "the question" (lambda () (nudge) asked)))
    (contains asked "mode blocking"))
  (wait-for "the diagnostic of the rerun"
            (lambda ()
              (nudge)
              (seq-some (lambda (run) (and (equal (plist-get run :mode) "blocking") (equal (plist-get run :state) "failed")))
                        (cublame--runs (eglot-current-server)))))
  (apply-action "Dismiss")
  (gone)
  (wait-for "the mode line" (lambda () (nudge) (equal (mode-line) " CUDA:off"))))

(defun test-a-log-is-explained ()
  (with-temp-buffer
    (insert "Traceback (most recent call last):\n"
            (format "  File \"%strain.py\", line %d, in forward\n" the-project the-fault)
            "RuntimeError: CUDA error: device-side assert triggered\n")
    (transient-mark-mode 1)
    (set-mark (point-min))
    (activate-mark)
    (call-interactively #'cublame-explain)
    (kill-region (point-min) (point-max)))
  (wait-for "the diagnostic" (lambda () (nudge) (flymake-diagnostics)))
  (apply-action "Dismiss")
  (gone)
  (call-interactively #'cublame-explain)
  (wait-for "the diagnostic" (lambda () (nudge) (flymake-diagnostics)))
  (apply-action "Dismiss")
  (gone)
  (contains (refused #'cublame-explain " \n") "no text to explain"))

(defun test-a-run-is-stopped ()
  (find-file (concat the-project "wait.py"))
  (python-mode)
  (cublame-run)
  (wait-for "the run" (lambda () (contents "started")))
  (wait-for "the mode line" (lambda () (nudge) (equal (mode-line) " CUDA:off(running)")))
  (cublame-stop)
  (wait-for-saying "asked to stop")
  (wait-for "its end" (lambda () (nudge) (equal (mode-line) " CUDA:off")))
  (cublame-stop)
  (wait-for-saying "cublame: no run"))

(defun test-debugging-without-dape-says-what-is-missing ()
  (contains (refused #'cublame-debug) "package dape")
  (equals (plist-get (cublame--dape (concat the-project "train.py") '("-x")) :args) ["-x"]))

(defun test-another-server-stands-beside ()
  (unless (string-empty-p (getenv "RASS"))
    (eglot-shutdown (eglot-current-server))
    (setq cublame-other-servers '(("ruff" "server")))
    (let ((exec-path (cons (getenv "RASS") exec-path))
          (process-environment (cons (concat "PATH=" (getenv "RASS") ":" (getenv "PATH")) process-environment)))
      (open-python "train.py")
      (goto-char (point-min))
      (insert "import sys\n")
      ;; Otherwise it goes when Emacs is idle, which it never is in batch.
      (eglot--signal-textDocument/didChange))
    (wait-for "the word of the other server"
              (lambda () (nudge) (seq-find (lambda (it) (string-search "`sys` imported but unused" (flymake-diagnostic-text it)))
                                   (flymake-diagnostics))))
    (cublame-run)
    (wait-for "the word of this one"
              (lambda () (nudge) (seq-find (lambda (it) (string-search "device-assert" (flymake-diagnostic-text it)))
                                           (flymake-diagnostics))))
    (wait-for "the mode line" (lambda () (nudge) (equal (mode-line) " CUDA:off(1 failed)")))))

(defun test-nothing-of-the-project-was-run () (equals (contents "bin/ran") nil))

(setq eglot-sync-connect 20
      eglot-autoshutdown t
      confirm-kill-processes nil
      project-find-functions (list (lambda (_) (cons 'transient the-project))))

(let (at)
  (condition-case failure
      (progn
        (dolist (test '(test-byte-compiles-without-a-warning
                        test-checkdoc-has-nothing-to-say
                        test-nothing-of-the-project-is-run
                        test-eglot-starts-the-server
                        test-the-mode-is-chosen
                        test-a-run-in-a-compilation-buffer-is-shown-at-its-line
                        test-the-runs-are-a-list-for-next-error
                        test-the-report-is-opened-and-copied
                        test-actions-are-applied
                        test-a-log-is-explained
                        test-a-run-is-stopped
                        test-debugging-without-dape-says-what-is-missing
                        test-another-server-stands-beside
                        test-nothing-of-the-project-was-run))
          (setq at test)
          (funcall test))
        (princ "\npassed\n"))
    (error (princ (format "\nFAILED %s: %s\n" at (error-message-string failure)))))
  (set-buffer-modified-p nil)
  (kill-emacs (if (eq at 'test-nothing-of-the-project-was-run) 0 1)))
;;; cublame-el.el ends here
