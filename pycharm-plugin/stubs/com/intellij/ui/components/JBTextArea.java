package com.intellij.ui.components;

import javax.swing.JTextArea;

public class JBTextArea extends JTextArea {
    public JBTextArea(int rows, int columns) { super(rows, columns); }
}
