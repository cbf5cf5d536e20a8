/**
 * Bundles the workflows into one file, the form in which a worker's sandboxes run them. Bundling takes seconds of
 * processor time, so `npm run build` puts a bundle beside the compiled sources, and a setting may name one. A worker
 * that runs from sources without that setting bundles at start, so it never runs outdated workflows.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigurationError } from '@capstan/core/errors/start-errors';
import { bundleWorkflowCode, DefaultLogger, type Logger } from '@temporalio/worker';

export interface WorkflowBundle {
  readonly code: string;
  /** The file that it was read from; null: this process made it. */
  readonly file: string | null;
}

/** The build writes the bundle under this name. */
export const builtBundleName = 'workflow-bundle.js';

const builtFile = fileURLToPath(new URL(`../${builtBundleName}`, import.meta.url));

function findWorkflowFile(name: string): string {
  return fileURLToPath(new URL(`../workflows/${name}${extname(import.meta.url)}`, import.meta.url));
}

/** @returns the code of the bundle, whose modules are loaded once for all workflows of a sandbox */
export async function bundleWorkflows(logger: Logger = new DefaultLogger('ERROR')): Promise<string> {
  const entry = findWorkflowFile('index');
  const payloadConverterPath = findWorkflowFile('payload-converter');
  const { code } = await bundleWorkflowCode({
    workflowsPath: entry,
    preloadModules: [entry, payloadConverterPath],
    payloadConverterPath,
    logger,
  });
  return code;
}

async function readNamed(file: string): Promise<string> {
  const code = await readFile(file, 'utf8').catch((cause) => {
    const message = `configuration: WORKFLOW_BUNDLE: "${file}" cannot be read: ${cause.message}`;
    throw new ConfigurationError(message, { cause });
  });
  // The name under which Temporal calls it, and the source map that Temporal expects at the end.
  if (code.includes('__TEMPORAL__') && code.includes('//# sourceMappingURL=data:')) return code;
  throw new ConfigurationError(
    `configuration: WORKFLOW_BUNDLE: "${file}" is no workflow bundle; allowed is what npm run build writes to dist/src/${builtBundleName}`,
  );
}

/**
 * @param named a ready bundle of this version of Capstan; without it, that of the build or a new one is used
 * @throws Error that describes the fault of the named file
 */
export async function loadWorkflowBundle(named: string | undefined, logger: Logger): Promise<WorkflowBundle> {
  if (named !== undefined) return { code: await readNamed(named), file: named };
  if (existsSync(builtFile)) return { code: await readFile(builtFile, 'utf8'), file: builtFile };
  return { code: await bundleWorkflows(logger), file: null };
}
