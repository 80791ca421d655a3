package com.intellij.openapi.ui.popup;

import com.intellij.util.Consumer;
import javax.swing.ListCellRenderer;

public interface IPopupChooserBuilder<T> {
    IPopupChooserBuilder<T> setTitle(String title);
    IPopupChooserBuilder<T> setRenderer(ListCellRenderer<? super T> renderer);
    IPopupChooserBuilder<T> setItemChosenCallback(Consumer<? super T> callback);
    JBPopup createPopup();
}
