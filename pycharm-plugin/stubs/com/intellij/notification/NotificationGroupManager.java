package com.intellij.notification;

public interface NotificationGroupManager {
    static NotificationGroupManager getInstance() { throw new UnsupportedOperationException("a signature, not the platform"); }
    NotificationGroup getNotificationGroup(String groupId);
}
