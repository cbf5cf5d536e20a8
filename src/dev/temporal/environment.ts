/**
 * Whose Temporal server is used. Only what is said in the environment counts as a choice: a configuration file
 * left by the Temporal command line, perhaps with keys for the cloud, must not take over the embedded stack.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';

function defined(environment: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

export function hasExternalTemporal(environment: NodeJS.ProcessEnv): boolean {
  return Boolean(environment.TEMPORAL_ADDRESS || environment.TEMPORAL_PROFILE);
}

/** Connection options and namespace for the SDK, from the variables, profiles and files it documents. */
export function readTemporalConnection(environment: NodeJS.ProcessEnv) {
  return loadClientConnectConfig({ overrideEnvVars: defined(environment) });
}

/** Without every setting for another Temporal server. */
export function withoutTemporal(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('TEMPORAL_')));
}

/**
 * For processes that shall use the embedded server, whatever the user's own configuration file says.
 * @param folder where a configuration file for them is written
 */
export function embeddedTemporalEnvironment(address: string, folder: string): NodeJS.ProcessEnv {
  const file = join(folder, 'temporal-client.toml');
  writeFileSync(file, `[profile.default]\naddress = "${address}"\nnamespace = "default"\n`);
  return { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: 'default', TEMPORAL_CONFIG_FILE: file };
}
