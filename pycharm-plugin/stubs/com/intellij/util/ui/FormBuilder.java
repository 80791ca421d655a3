package com.intellij.util.ui;

import javax.swing.JComponent;
import javax.swing.JPanel;

public class FormBuilder {
    public static FormBuilder createFormBuilder() { throw new UnsupportedOperationException("a signature, not the platform"); }
    public FormBuilder addLabeledComponent(String label, JComponent component) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public FormBuilder addComponent(JComponent component) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public FormBuilder addTooltip(String text) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public FormBuilder addComponentFillVertically(JComponent component, int topInset) { throw new UnsupportedOperationException("a signature, not the platform"); }
    public JPanel getPanel() { throw new UnsupportedOperationException("a signature, not the platform"); }
}
