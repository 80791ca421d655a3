// The interpreter of the workspace: the setting, else the one chosen in the Python extension.

import * as vscode from 'vscode';

/** The part of the Python extension's API that is used here (@vscode/python-extension, "environments"). */
interface PythonApi {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: { readonly path: string }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

/** Absolute path of the interpreter; undefined leaves the choice to the server. Nothing is run to find it. */
export async function interpreterOf(resource?: vscode.Uri): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted) return undefined;
  const setting = vscode.workspace.getConfiguration('cublame', resource).get<string>('python', '');
  if (setting !== '') return setting;
  const environments = await pythonEnvironments();
  if (environments === undefined) return undefined;
  const resolved = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
  return resolved?.executable.uri?.fsPath;
}

/** Calls back when another interpreter is chosen in the Python extension. */
export async function watchInterpreter(changed: () => void): Promise<vscode.Disposable | undefined> {
  return (await pythonEnvironments())?.onDidChangeActiveEnvironmentPath(changed);
}

async function pythonEnvironments(): Promise<PythonApi['environments']> {
  const extension = vscode.extensions.getExtension<PythonApi>('ms-python.python');
  if (extension === undefined) return undefined;
  try {
    return (await extension.activate()).environments;
  } catch {
    // A Python extension that cannot start says so itself.
    return undefined;
  }
}
