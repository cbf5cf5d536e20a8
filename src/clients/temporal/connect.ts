/** The connection to Temporal, by its own configuration: `TEMPORAL_*` variables and TOML profiles. */
import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { createDataConverter } from './data-converter.ts';

/** `host:port` */
export function readTemporalAddress(): string {
  return loadClientConnectConfig().connectionOptions.address ?? 'localhost:7233';
}

/** @param payloadKeys the setting `PAYLOAD_KEYS`. @throws when the server does not answer within 10 s */
export async function connectTemporal(payloadKeys?: string): Promise<Client> {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: '10 seconds' });
  const dataConverter = createDataConverter(payloadKeys);
  return new Client({ connection, dataConverter, ...(namespace === undefined ? {} : { namespace }) });
}
