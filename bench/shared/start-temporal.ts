/** Temporal as `npm start` runs it (durable), and the settings of Capstan's processes for it and for the database. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Connection } from '@temporalio/client';
import { createPartReport } from '../../src/dev/progress.ts';
import { embeddedTemporalEnvironment, withoutTemporal } from '../../src/dev/temporal/environment.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findTemporal } from '../../src/dev/temporal/source.ts';
import type { Place } from './run-bench.ts';

/** @returns its address */
export async function startTemporalServer(place: Place): Promise<string> {
  const { supervisor, report, dataDir, cacheDir } = place;
  const environment = withoutTemporal(process.env);
  const { path } = await findTemporal({ cacheDir, environment }, createPartReport(report, 'Temporal'));
  return startTemporal(supervisor, {
    dataDir,
    ephemeral: false,
    environment,
    program: path,
    port: await place.nextPort(),
    uiPort: await place.nextPort(),
  });
}

/** `IndexedValueType` of the Temporal API. */
const valueTypes = { Int: 3, Double: 4 } as const;

/** Beside those that this checkout asks for. */
export async function addSearchAttributes(
  address: string,
  types: Readonly<Record<string, keyof typeof valueTypes>>,
): Promise<void> {
  const connection = await Connection.connect({ address });
  try {
    const searchAttributes = Object.fromEntries(
      Object.entries(types).map(([name, type]) => [name, valueTypes[type]]),
    );
    await connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes });
  } finally {
    await connection.close();
  }
}

interface Ends {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  /** The port of the API. */
  readonly port: number;
}

/** Once per bench. */
export function createEnvironment(
  { dataDir }: Place,
  { databaseUrl, temporalAddress, port }: Ends,
): NodeJS.ProcessEnv {
  const mediaDir = join(dataDir, 'media');
  mkdirSync(mediaDir);
  return {
    ...withoutTemporal(process.env),
    ...embeddedTemporalEnvironment(temporalAddress, dataDir),
    DATABASE_URL: databaseUrl,
    MEDIA_URL: pathToFileURL(mediaDir).href,
    HOST: '127.0.0.1',
    PORT: String(port),
    RATE_LIMITS: 'off',
  };
}
