package com.intellij.ui.components;

import javax.swing.JCheckBox;

public class JBCheckBox extends JCheckBox {
    public JBCheckBox(String text) { super(text); }
}
