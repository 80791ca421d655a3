// Gives the debug type `debugpy`, as ms-python.debugpy does: its defaults, its merging of the env file, its adapter.
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

const python = () => vscode.workspace.getConfiguration('debugpyForTests').get('python');

function withEnvFile(configuration) {
  if (!configuration.envFile) return configuration;
  const text = fs.readFileSync(configuration.envFile, 'utf8');
  const lines = [...text.matchAll(/^\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/gm)];
  return { ...configuration, envFile: undefined, env: { ...Object.fromEntries(lines.map(([, name, value]) => [name, value])), ...configuration.env } };
}

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider('debugpy', {
      resolveDebugConfigurationWithSubstitutedVariables(folder, configuration) {
        const resolved = withEnvFile(configuration);
        return {
          ...resolved,
          python: [].concat(resolved.python ?? python()),
          cwd: resolved.cwd ?? folder?.uri.fsPath,
          console: resolved.console ?? 'integratedTerminal',
          redirectOutput: resolved.console === 'internalConsole',
        };
      },
    }),
    vscode.debug.registerDebugAdapterDescriptorFactory('debugpy', {
      createDebugAdapterDescriptor() {
        const folder = execFileSync(python(), ['-c', 'import debugpy, os; print(os.path.dirname(debugpy.__file__))'], { encoding: 'utf8' }).trim();
        return new vscode.DebugAdapterExecutable(python(), [path.join(folder, 'adapter')]);
      },
    }),
  );
};
