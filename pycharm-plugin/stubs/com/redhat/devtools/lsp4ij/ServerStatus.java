package com.redhat.devtools.lsp4ij;

public enum ServerStatus { none, checking_installed, installing, installed, not_installed, starting, started, stopping, stopped }
