;;; cublame-el.el --- The package for Emacs in a real one  -*- lexical-binding: t -*-
;; Every command, the diagnostics and actions, the mode line, a second server beside; byte-compiled first, and linted.
(load (concat (getenv "HERE") "/harness"))
(require 'checkdoc)

(defvar the-package (concat (getenv "EDITORS") "/emacs/"))
(defvar the-fault)

;; What the package and the server say to the user.
(defvar the-said nil)
(advice-add 'message :before
            (lambda (&optional format &rest arguments)
              (when format (push (apply #'format-message format arguments) the-said))))
(defun wait-for-saying (part)
  (wait-for part (lambda ()
                   (nudge)
                   (seq-find (lambda (text) (string-search part text)) the-said))))

(defun refused (function &rest arguments)
  (condition-case failure
      (progn (apply function arguments) (error "%S was not refused" function))
    (user-error (error-message-string failure))))

(defun here (name) (cl-find (concat the-project name) (buffer-list) :key #'buffer-file-name :test #'equal))

(defun mode-line () (with-current-buffer (here "train.py") (cublame-mode-line)))

(defun open-python (name)
  (find-file (concat the-project name))
  (python-mode)
  (eglot-ensure)
  (run-hooks 'post-command-hook)
  (wait-for "the server" #'eglot-current-server))

(test "byte compiles without a warning"
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

(test "checkdoc has nothing to say"
  (equals (complaints (concat the-package "cublame.el")) nil)
  ;; And it would: one that has said nothing may not have looked.
  (let ((bad (concat the-package "bad.el")))
    (with-temp-file bad
      (insert-file-contents (concat the-package "cublame.el"))
      (search-forward "\"Stop the newest run")
      (replace-match "\"stops newest run"))
    (unless (complaints bad) (error "checkdoc has not looked"))
    (delete-file bad)))

(test "nothing of the project is run"
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

(test "eglot starts the server"
  (contains (refused #'cublame-stop) "No cublame server is running")
  (cublame-setup)
  (open-python "train.py")
  (equals (type-of (eglot-current-server)) 'cublame-server)
  (setq the-fault (fault-line))
  (equals (mode-line) " CUDA:trace")
  (unless (member '(:eval (cublame-mode-line)) mode-line-misc-info) (error "it is not in the mode line")))

(test "the mode is chosen"
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

(test "a run in a compilation buffer is shown at its line"
  (goto-char (point-max))
  (insert "# written before the run\n")
  (cublame-run '("--steps" "3 4"))
  (diagnostic-at the-fault)
  (contains (contents "train.py") "# written before the run")
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

(test "the runs are a list for next-error"
  (cublame-runs)
  (with-current-buffer "*cublame runs*"
    (contains (buffer-string) "failed, mode off")
    (contains (buffer-string) "--steps 3 4"))
  (next-error 1 t)
  (equals (list (buffer-file-name) (line-number-at-pos)) (list (concat the-project "train.py") the-fault)))

(test "the report is opened and copied"
  (cublame-report)
  (let ((report (wait-for "the report" (lambda () (nudge) (get-buffer "*cublame report*")))))
    (contains (with-current-buffer report (buffer-string)) "device-side assert")
    (equals (buffer-local-value 'buffer-read-only report) t))
  (switch-to-buffer (here "train.py"))
  (apply-action "Copy the report")
  (wait-for-saying "the report is copied")
  (contains (current-kill 0) "device-side assert")
  (let* (page (browse-url-browser-function (lambda (address &rest _) (setq page address))))
    (apply-action "Open the report")
    (contains (wait-for "the page" (lambda () (nudge) page)) "report.html")))

(test "a run is made again in another mode, and what is dismissed is gone"
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
  (no-diagnostic)
  (wait-for "the mode line" (lambda () (nudge) (equal (mode-line) " CUDA:off"))))

(test "a log is explained"
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
  (no-diagnostic)
  (call-interactively #'cublame-explain)
  (wait-for "the diagnostic" (lambda () (nudge) (flymake-diagnostics)))
  (apply-action "Dismiss")
  (no-diagnostic)
  (contains (refused #'cublame-explain " \n") "no text to explain"))

(test "a run is stopped"
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

(test "what the documentation says in Emacs Lisp can be read"
  (with-temp-buffer
    (insert-file-contents (concat (getenv "HERE") "/../../docs/editors.md"))
    (let ((count 0))
      (while (re-search-forward "^```elisp\n\\(\\(?:.*\n\\)*?\\)```$" nil t)
        (cl-incf count)
        (car (read-from-string (concat "(progn " (match-string 1) ")"))))
      (unless (> count 2) (error "only %d were found" count)))))

(test "the doctor says what it sees"
  (cublame-doctor)
  (wait-for "its word on Python" (lambda () (with-current-buffer "*cublame doctor*"
                                              (string-search "Python 3" (buffer-string))))))

(test "debugging without dape says what is missing"
  (contains (refused #'cublame-debug) "package dape")
  (equals (plist-get (cublame--dape (concat the-project "train.py") '("-x")) :args) ["-x"]))

(test "another server stands beside"
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

(test "nothing of the project was run" (equals (contents "bin/ran") nil))

(all-passed)
;;; cublame-el.el ends here
