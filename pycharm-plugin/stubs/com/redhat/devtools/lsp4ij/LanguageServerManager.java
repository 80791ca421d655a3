package com.redhat.devtools.lsp4ij;

import com.intellij.openapi.project.Project;
import java.util.concurrent.CompletableFuture;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

public class LanguageServerManager {
    public static LanguageServerManager getInstance(@NotNull Project project) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public @Nullable ServerStatus getServerStatus(@NotNull String languageServerId) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public @NotNull CompletableFuture<LanguageServerItem> getLanguageServer(@NotNull String languageServerId) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public void start(@NotNull String languageServerId) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public void stop(@NotNull String languageServerId) { throw new UnsupportedOperationException("a signature, not the platform"); }
}
