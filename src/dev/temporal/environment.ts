/**
 * Chooses the Temporal server. Only the environment counts as a choice: a configuration file of the Temporal command
 * line, perhaps with keys for the cloud, must not replace the embedded server.
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

/** Connection options and namespace for the SDK, from the variables, profiles and files that it documents. */
export function readTemporalConnection(environment: NodeJS.ProcessEnv) {
  return loadClientConnectConfig({ overrideEnvVars: defined(environment) });
}

/** The environment without any setting for another Temporal server. */
export function withoutTemporal(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('TEMPORAL_')));
}

/**
 * For processes that use the embedded server, whatever the user's own configuration file contains.
 * @param folder target folder of their configuration file
 */
export function embeddedTemporalEnvironment(address: string, folder: string): NodeJS.ProcessEnv {
  const file = join(folder, 'temporal-client.toml');
  writeFileSync(file, `[profile.default]\naddress = "${address}"\nnamespace = "default"\n`);
  return { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: 'default', TEMPORAL_CONFIG_FILE: file };
}
