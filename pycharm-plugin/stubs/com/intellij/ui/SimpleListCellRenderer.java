package com.intellij.ui;

import com.intellij.util.Function;
import javax.swing.ListCellRenderer;

public abstract class SimpleListCellRenderer<T> implements ListCellRenderer<T> {
    public static <T> SimpleListCellRenderer<T> create(String nullValue, Function<? super T, String> getText) { throw new UnsupportedOperationException("a signature, not the platform"); }
}
