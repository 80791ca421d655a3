package com.intellij.openapi.actionSystem;

public abstract class ActionGroup extends AnAction {
}
