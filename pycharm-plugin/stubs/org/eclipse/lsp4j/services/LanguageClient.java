package org.eclipse.lsp4j.services;

public interface LanguageClient {
}
