package com.intellij.notification;

public final class NotificationGroup {
    public Notification createNotification(String content, NotificationType type) { throw new UnsupportedOperationException("a signature, not the platform"); }
}
