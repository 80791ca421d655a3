package com.intellij.openapi.actionSystem;

import java.util.List;

public class DefaultActionGroup extends ActionGroup {
    public DefaultActionGroup(List<? extends AnAction> actions) { throw new UnsupportedOperationException("a signature, not the platform"); }
    @Override public void actionPerformed(AnActionEvent event) { throw new UnsupportedOperationException("a signature, not the platform"); }
}
