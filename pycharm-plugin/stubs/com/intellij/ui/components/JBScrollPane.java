package com.intellij.ui.components;

import java.awt.Component;
import javax.swing.JScrollPane;

public class JBScrollPane extends JScrollPane {
    public JBScrollPane(Component view) { super(view); }
}
