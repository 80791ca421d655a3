;;; cublame.el --- Which line broke, when a CUDA kernel fails  -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; Keywords: languages, tools
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; CUDA launches are asynchronous: when a kernel fails, the error surfaces at a later, innocent line.
;; The program `cublame' finds the line that really failed.  This package makes it a language server of
;; Eglot, starts and stops runs, and shows their verdicts.
;;
;; In your init file:
;;
;;   (require 'cublame)
;;   (cublame-setup)
;;   (add-hook 'python-mode-hook #'eglot-ensure)
;;
;; Eglot has one server for a buffer.  To keep another beside cublame, install the program `rass'
;; (pip install rassumfrassum), which passes on to both, and name the other one:
;;
;;   (setq cublame-other-servers '(("basedpyright-langserver" "--stdio")))
;;
;; The server's settings are Eglot's, for example in .dir-locals.el:
;;
;;   ((python-mode (eglot-workspace-configuration (:cublame (:mode "blocking")))))
;;
;; Commands: `cublame-run', `cublame-stop', `cublame-debug', `cublame-choose-mode', `cublame-explain',
;; `cublame-runs', `cublame-report', `cublame-doctor'.  What can be done about a diagnostic is among `eglot-code-actions'.

;;; Code:

(require 'cl-lib)
(require 'compile)
(require 'eglot)
(require 'jsonrpc)
(require 'seq)
(require 'subr-x)
(require 'url-util)

(declare-function dape "dape" (config &optional skip-compile))
(defvar dape-configs)

(defgroup cublame nil
  "Which line broke, when a CUDA kernel fails."
  :group 'tools
  :prefix "cublame-")

(defcustom cublame-program nil
  "The program, by its absolute name.
When nil it is the first `cublame' on the variable `exec-path' that is not
inside the project: what a project brings along is never run unasked."
  :type '(choice (const :tag "The first on exec-path" nil) file))

(defcustom cublame-run-in 'compilation
  "Where `cublame-run' runs a program.
A run in the background shows itself in the mode line only."
  :type '(choice (const :tag "In a compilation buffer" compilation)
                 (const :tag "In the background" background)))

(defcustom cublame-other-servers nil
  "Other language servers for the same buffers, each a list of strings.
They need the program `rass' (pip install rassumfrassum)."
  :type '(repeat (repeat string)))

(defcustom cublame-modes '(python-mode python-ts-mode cuda-mode)
  "The major modes that `cublame-setup' tells Eglot about."
  :type '(repeat symbol))

(defconst cublame--place-in-verdict
  '(cublame "^ *--> \\(.+?\\):\\([0-9]+\\)\\(?::\\([0-9]+\\)\\)?$" 1 2 3)
  "How a verdict names its place.")

(defvar cublame--dape-configuration
  '(cublame modes (python-mode python-ts-mode)
            command (lambda () (cublame-find-program (cublame--project-root)))
            command-args ("dap")
            :type "python"
            :request "launch"
            :program dape-buffer-default
            :cwd dape-cwd
            :args []
            :console "integratedTerminal")
  "The debug adapter of cublame for `dape-configs'.
It stands before debugpy's.")

;;;###autoload
(defun cublame-setup ()
  "Make cublame the server of `cublame-modes' and show its state in the mode line.
With the package `dape', add a debug configuration `cublame' to it."
  (setf (alist-get cublame-modes eglot-server-programs nil nil #'equal) #'cublame--contact)
  (put 'cuda-mode 'eglot-language-id "cuda-cpp")
  (add-to-list 'mode-line-misc-info '(:eval (cublame-mode-line)) t)
  (add-to-list 'compilation-error-regexp-alist-alist cublame--place-in-verdict)
  (add-to-list 'compilation-error-regexp-alist 'cublame)
  (with-eval-after-load 'dape (add-to-list 'dape-configs cublame--dape-configuration t)))

;;; Commands

;;;###autoload
(defun cublame-run (&optional arguments)
  "Save this buffer and run its file under cublame, in the mode of the project.
ARGUMENTS is a list of strings; with a prefix argument they are asked for."
  (interactive (list (cublame--read-arguments)))
  (cublame--order (cublame--server) "cublame.run"
                  (list :uri (cublame--uri (cublame--program-of-buffer)) :arguments (vconcat arguments))))

;;;###autoload
(defun cublame-stop ()
  "Stop the newest run that is going on."
  (interactive)
  (cublame--order (cublame--server) "cublame.stop" nil
                  (lambda (_) (message "cublame: the run is asked to stop"))))

;;;###autoload
(defun cublame-debug (&optional arguments)
  "Debug the file of this buffer with the package `dape', through `cublame dap'.
ARGUMENTS is a list of strings; with a prefix argument they are asked for."
  (interactive (list (cublame--read-arguments)))
  (let ((program (cublame--program-of-buffer)))
    (unless (require 'dape nil t)
      (user-error "Debugging needs the package dape, which needs Emacs 29"))
    (dape (cublame--dape program arguments))))

;;;###autoload
(defun cublame-choose-mode (mode)
  "Choose how failures are found in this project.
MODE is kept in .cublame/mode, where every other front end finds it."
  (interactive (list (cublame--read-mode)))
  (let* ((server (cublame--server))
         (root (cublame--root server)))
    (cublame--order server "cublame.setMode"
                    (list :mode mode :quiet t :folder (cublame--uri root))
                    (lambda (_)
                      ;; The server answers before the file is on disk.
                      (cublame--remember-mode (cublame--folder root) mode)
                      (message "cublame: runs of this project are in mode %s from now on" mode)))))

;;;###autoload
(defun cublame-explain (log)
  "Explain LOG, the text of a run of any origin.
Interactively it is the region, or else what was copied last, here or in
another program."
  (interactive (list (if (use-region-p)
                         (buffer-substring-no-properties (region-beginning) (region-end))
                       (current-kill 0 t))))
  (when (string-blank-p log)
    (user-error "There is no text to explain: select the lines of a log, or copy them"))
  (cublame--order (cublame--server) "cublame.explainText" (list :text log)))

;;;###autoload
(defun cublame-runs ()
  "List what was run in this project, newest first.
`next-error' goes to the failures."
  (interactive)
  (let ((runs (cublame--runs (cublame--server))))
    (unless runs
      (user-error "This project has no runs yet: M-x cublame-run, or `cublame run' in any terminal"))
    (with-current-buffer (get-buffer-create "*cublame runs*")
      (let ((inhibit-read-only t))
        (erase-buffer)
        (mapc #'cublame--insert-run runs))
      (goto-char (point-min))
      (compilation-mode "cublame runs")
      (setq next-error-last-buffer (current-buffer))
      (display-buffer (current-buffer)))))

;;;###autoload
(defun cublame-report ()
  "Show the report of the newest failure.
The same as a page for the browser is an action at its diagnostic."
  (interactive)
  (cublame--order (cublame--server) "cublame.copyReport" nil
                  (lambda (report)
                    (with-current-buffer (get-buffer-create "*cublame report*")
                      (let ((inhibit-read-only t))
                        (erase-buffer)
                        (insert report))
                      (goto-char (point-min))
                      (view-mode 1)
                      (display-buffer (current-buffer))))))

;;;###autoload
(defun cublame-doctor ()
  "Say whether the GPU, its driver and the project's Python go together."
  (interactive)
  (let* ((default-directory (cublame--project-root))
         (program (cublame-find-program default-directory)))
    (compilation-start (concat (shell-quote-argument program) " doctor") nil
                       (lambda (_mode) "*cublame doctor*"))))

(defun cublame--read-arguments ()
  "Ask for the arguments of the program, given a prefix argument."
  (when current-prefix-arg
    (split-string-and-unquote (read-string "Arguments: "))))

(defun cublame--program-of-buffer ()
  "The file of this buffer, with the text of this buffer in it."
  (unless buffer-file-name
    (user-error "The buffer %s is no file that could be run" (buffer-name)))
  (when (buffer-modified-p)
    (save-buffer))
  buffer-file-name)

;;; Modes

(defconst cublame--offered-modes
  '(("trace" . "the failing line at full speed; no slowdown measured")
    ("blocking" . "each launch is waited for; up to twice the run time")
    ("guard" . "a bad index or label is caught before the launch; a short wait at each check")
    ("core" . "trace, and a GPU core dump as proof; the process ends at the fault")
    ("sanitize" . "under compute-sanitizer: the bad access itself; many times slower")
    ("off" . "nothing is changed; judged by output and exception alone"))
  "The modes to choose from, the best default first: what each gives and costs.")

(defvar cublame--known-modes nil
  "Alist from a folder to the time of the last look into it and the mode found.")

(defconst cublame--look-again 2
  "After how many seconds the file with the mode is read again.
The mode line is drawn more often than that.")

(defun cublame--read-mode ()
  "Ask for a mode."
  (let* ((completion-extra-properties
          (list :annotation-function
                (lambda (mode) (concat "  " (cdr (assoc mode cublame--offered-modes))))))
         (modes (mapcar #'car cublame--offered-modes)))
    (completing-read "How CUDA failures are found: " modes nil t)))

(defun cublame--mode (server)
  "The mode that a run of SERVER's project takes."
  (let* ((folder (cublame--folder (cublame--root server)))
         (known (cdr (assoc folder cublame--known-modes))))
    (when (or (null known) (> (- (float-time) (car known)) cublame--look-again))
      (setq known (cublame--remember-mode folder (cublame--mode-in folder))))
    (or (cdr known) "trace")))

(defun cublame--remember-mode (folder mode)
  "Remember that FOLDER has MODE now."
  (setf (alist-get folder cublame--known-modes nil nil #'equal) (cons (float-time) mode)))

(defun cublame--mode-in (folder)
  "The word in the file `mode' of FOLDER, or nil.
Only a plain file is read: opening a named pipe would wait for somebody to
write to it.  Another machine is not asked while the mode line is drawn."
  (let ((file (expand-file-name "mode" folder)))
    (unless (file-remote-p file)
      (let ((attributes (file-attributes file)))
        (when (and attributes (null (file-attribute-type attributes)))
          (with-temp-buffer
            (insert-file-contents file nil 0 4096)
            (when (looking-at "[ \t\n]*\\([a-z]+\\)[ \t\n]*\\'")
              (match-string 1))))))))

(defun cublame--folder (root)
  "The folder of ROOT's mode, by the rules of server/src/session/place.rs."
  (let ((chosen (getenv "CUBLAME_DIR")))
    (if (and chosen (not (string-empty-p chosen)))
        (expand-file-name chosen root)
      (expand-file-name
       ".cublame"
       (or (locate-dominating-file root ".cublame")
           (locate-dominating-file
            root (lambda (folder)
                   (seq-some (lambda (mark) (file-exists-p (expand-file-name mark folder)))
                             '(".vscode" ".idea" ".git" "pyproject.toml"))))
           root)))))

;;; The mode line

(defun cublame-mode-line ()
  "The state of this buffer's project for the mode line, or nil.
Such as \" CUDA:trace\" or \" CUDA:blocking(1 failed)\"."
  (let ((server (and (bound-and-true-p eglot--managed-mode) (eglot-current-server))))
    (when (cublame-server-p server)
      (let* ((runs (cublame--runs server))
             (failed (cublame--standing-failures runs))
             (running (seq-some (lambda (run) (equal (plist-get run :state) "running")) runs))
             (notes (delq nil (list (and running "running")
                                    (and (> failed 0) (format "%d failed" failed))))))
        (concat " CUDA:" (cublame--mode server)
                (and notes (format "(%s)" (string-join notes ", "))))))))

(defun cublame--standing-failures (known)
  "How many programs have failed when they last came to an end.
KNOWN is the list from `cublame/runs'.  What was dismissed does not count."
  (let (seen (failures 0))
    (seq-doseq (run known)
      (let ((program (or (plist-get run :entry) (plist-get run :argv)))
            (state (plist-get run :state)))
        (when (and (member state '("failed" "succeeded")) (not (member program seen)))
          (push program seen)
          (when (and (equal state "failed")
                     (not (cublame--true-p (plist-get run :dismissed)))
                     (seq-some (lambda (verdict) (cublame--true-p (plist-get verdict :fatal)))
                               (plist-get run :verdicts)))
            (cl-incf failures)))))
    failures))

(defun cublame--true-p (value)
  "Is VALUE, which came as JSON, true?"
  (not (memq value '(nil :json-false))))

(defun cublame--insert-run (run)
  "Insert RUN as a line, and its verdicts as lines for `next-error'."
  (insert (format "%s %s, mode %s, %s\n"
                  (format-time-string "%H:%M:%S" (plist-get run :started))
                  (plist-get run :state)
                  (plist-get run :mode)
                  (string-join (plist-get run :argv) " ")))
  (seq-doseq (verdict (plist-get run :verdicts))
    (let ((place (seq-find (lambda (place) (plist-get place :path))
                           (list (plist-get verdict :place) (plist-get verdict :reported)))))
      (insert (if place
                  (format "%s:%d: " (plist-get place :path) (plist-get place :line))
                "  ")
              (format "%s (%s)\n" (plist-get verdict :summary) (plist-get verdict :certainty))))))

;;; The server

(defclass cublame-server (eglot-lsp-server)
  ((runs :initform nil :accessor cublame--runs :documentation "The runs of the project, newest first."))
  :documentation "The language server of cublame.")

(defvar cublame--servers nil
  "The servers that were started, newest first.")

(cl-defmethod eglot-initialization-options ((server cublame-server))
  "Declare to SERVER the messages of its own that are understood here."
  (push server cublame--servers)
  (list :custom (vconcat '("cublame/runs" "cublame/report")
                         (and (eq cublame-run-in 'compilation) '("cublame/runInTerminal")))))

(cl-defmethod eglot-handle-notification
  ((server cublame-server) (_method (eql cublame/runs)) &key runs &allow-other-keys)
  "Remember what SERVER has told.
That is RUNS."
  (setf (cublame--runs server) (append runs nil))
  (force-mode-line-update t))

(cl-defmethod eglot-handle-notification
  ((_server cublame-server) (_method (eql cublame/report)) &key uri &allow-other-keys)
  "Show the page at URI, which is the browser's."
  (browse-url-of-file
   (decode-coding-string (url-unhex-string (string-remove-prefix "file://" uri)) 'utf-8)))

(cl-defmethod eglot-handle-notification
  ((_server cublame-server) (_method (eql cublame/runInTerminal)) &key argv cwd &allow-other-keys)
  "Run ARGV in CWD in a compilation buffer of its own that takes input."
  (let* ((default-directory (file-name-as-directory cwd))
         (old (get-buffer-process "*cublame run*"))
         (name (if old (generate-new-buffer-name "*cublame run*") "*cublame run*")))
    (compilation-start (mapconcat #'shell-quote-argument argv " ") t (lambda (_mode) name))))

;; The answer is the report, which only an editor can put where it can be pasted.
(if (fboundp 'eglot-execute)
    (cl-defmethod eglot-execute :around ((server cublame-server) action)
      "Copy the report that SERVER gives, if that is what ACTION is."
      (let ((command (if (stringp (plist-get action :command)) action (plist-get action :command))))
        (if (equal (plist-get command :command) "cublame.copyReport")
            (cublame--copy-report server (plist-get command :arguments))
          (cl-call-next-method))))
  ;; Eglot 1.9 of Emacs 28.
  (with-suppressed-warnings ((obsolete eglot-execute-command))
    (cl-defmethod eglot-execute-command
      ((server cublame-server) (_command (eql cublame.copyReport)) arguments)
      "Copy the report that SERVER gives for ARGUMENTS."
      (cublame--copy-report server arguments))))

(defun cublame--copy-report (server arguments)
  "Copy the report that SERVER gives for ARGUMENTS."
  (cublame--order server "cublame.copyReport" (and (> (length arguments) 0) (elt arguments 0))
                  (lambda (report)
                    (kill-new report)
                    (message "cublame: the report is copied"))))

(defun cublame--server ()
  "The server of this buffer, or else the newest.
A log can be explained from anywhere."
  (setq cublame--servers (seq-filter #'jsonrpc-running-p cublame--servers))
  (let ((server (eglot-current-server)))
    (cond ((cublame-server-p server) server)
          ((car cublame--servers))
          (t (user-error "No cublame server is running: M-x eglot in a Python file of the project")))))

(defun cublame--order (server command &optional argument done)
  "Ask SERVER for COMMAND with ARGUMENT, and call DONE with its answer."
  (jsonrpc-async-request
   server :workspace/executeCommand
   (list :command command :arguments (if argument (vector argument) []))
   :success-fn (or done #'ignore)
   :error-fn (lambda (failure) (message "cublame: %s" (plist-get failure :message)))))

(defun cublame--contact (&rest _)
  "The words to start the server with, for the project of this buffer."
  (let ((program (cublame-find-program (cublame--project-root))))
    (append (list 'cublame-server)
            (if cublame-other-servers
                (append (list "rass" "--" program "lsp")
                        (mapcan (lambda (server) (cons "--" (copy-sequence server))) cublame-other-servers))
              (list program "lsp")))))

(defun cublame--root (server)
  "The folder of SERVER's project."
  (expand-file-name (project-root (eglot--project server))))

(defun cublame--project-root ()
  "The folder of this buffer's project."
  (let ((project (project-current)))
    (expand-file-name (if project (project-root project) default-directory))))

(defun cublame--uri (path)
  "The address of the file PATH."
  (concat "file://" (url-hexify-string (directory-file-name (file-local-name (file-truename path)))
                                       url-path-allowed-chars)))

;;; The program

(defun cublame-find-program (project)
  "The absolute name of the program for PROJECT, a folder."
  (if cublame-program
      (if (and (file-name-absolute-p cublame-program) (file-executable-p cublame-program))
          (expand-file-name cublame-program)
        (user-error "`cublame-program', %s, is no program with an absolute name" cublame-program))
    (let* ((remote (file-remote-p project))
           ;; A relative folder would be looked up in the working directory, which the project may decide.
           (folders (seq-filter #'file-name-absolute-p (seq-filter #'stringp (exec-path))))
           (programs (seq-filter (lambda (path)
                                   (and (file-executable-p path) (not (file-directory-p path))))
                                 (mapcar (lambda (folder) (concat remote (expand-file-name "cublame" folder)))
                                         folders)))
           (trusted (seq-remove (lambda (path) (cublame--of-project-p path project)) programs)))
      (cond (trusted (file-local-name (car trusted)))
            (programs (user-error "%s is not used: it is inside the project.  If you trust it, name it with `cublame-program'"
                                  (car programs)))
            (t (user-error "No cublame program was found: put one on PATH, or name it with `cublame-program'"))))))

(defun cublame--of-project-p (path project)
  "Is PATH something that PROJECT, a folder, has brought along?
A link in the project to a program outside is still the project's word.
Where the user's home is the project, or in it, the user's own programs are
in it too."
  (and (not (file-in-directory-p (concat (file-remote-p project) "~/") project))
       (or (string-prefix-p (file-name-as-directory (expand-file-name project)) (expand-file-name path))
           (file-in-directory-p (file-truename path) project))))

;;; Debugging

(defun cublame--dape (program arguments)
  "The configuration that debugs PROGRAM with ARGUMENTS."
  (let ((root (cublame--project-root)))
    (list 'command (cublame-find-program root)
          'command-args '("dap")
          'command-cwd root
          :type "python"
          :request "launch"
          :program program
          :cwd root
          :args (vconcat arguments)
          :console "integratedTerminal")))

(provide 'cublame)
;;; cublame.el ends here
