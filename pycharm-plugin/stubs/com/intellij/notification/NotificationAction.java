package com.intellij.notification;

import com.intellij.openapi.actionSystem.AnAction;

public abstract class NotificationAction extends AnAction {
    public static NotificationAction createSimple(String text, Runnable performAction) { throw new UnsupportedOperationException("a signature, not the platform"); }
}
