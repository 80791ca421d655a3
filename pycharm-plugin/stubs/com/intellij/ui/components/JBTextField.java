package com.intellij.ui.components;

import javax.swing.JTextField;

public class JBTextField extends JTextField {
}
